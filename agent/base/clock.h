/*
 * Two clocks: the monotonic one for durations, the wall for what people read.
 *
 * Deadlines are monotonic only (CLOCK_MONOTONIC; lifetimes that must count while the machine is
 * suspended use CLOCK_BOOTTIME), so a jump of the wall expires nothing. The override is for tests.
 */
#ifndef NK_BASE_CLOCK_H
#define NK_BASE_CLOCK_H

#include <stddef.h>
#include <stdint.h>

uint64_t nk_clock_mono_ms(void);
uint64_t nk_clock_mono_ns(void);
uint64_t nk_clock_boot_ms(void);
int64_t nk_clock_wall_ms(void); /* since 1970, UTC */

#define NK_CLOCK_TEXT 25 /* "2026-11-29T15:44:15.123Z" and its NUL */
void nk_clock_format(int64_t wall_ms, char out[NK_CLOCK_TEXT]); /* RFC 3339, UTC, ms */
void nk_clock_format_http(int64_t wall_ms, char out[30]);       /* RFC 9110 section 5.6.7 */

void nk_clock_fake(uint64_t mono_ms, int64_t wall_ms); /* tests: time stands still at these */
void nk_clock_real(void);

#endif
