#include "base/clock.h"

#include <stdbool.h>
#include <time.h>

#define DAY_S 86400
#define WALL_MIN INT64_C(-62135596800000) /* 0001-01-01T00:00:00.000Z */
#define WALL_MAX INT64_C(253402300799999) /* 9999-12-31T23:59:59.999Z */

/* The override of the tests. */
static struct {
    bool on;
    uint64_t mono_ms;
    int64_t wall_ms;
} fake;

static uint64_t read_ns(clockid_t id)
{
    struct timespec now;

    (void)clock_gettime(id, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

uint64_t nk_clock_mono_ms(void)
{
    return nk_clock_mono_ns() / 1000000u;
}

uint64_t nk_clock_mono_ns(void)
{
    return fake.on ? fake.mono_ms * 1000000u : read_ns(CLOCK_MONOTONIC);
}

uint64_t nk_clock_boot_ms(void)
{
    return fake.on ? fake.mono_ms : read_ns(CLOCK_BOOTTIME) / 1000000u;
}

int64_t nk_clock_wall_ms(void)
{
    return fake.on ? fake.wall_ms : (int64_t)(read_ns(CLOCK_REALTIME) / 1000000u);
}

struct date {
    int year, month, day; /* month and day from 1 */
    int weekday;          /* 0: Sunday */
    int hour, minute, second, ms;
};

/* Days since 1970 to a date of the proleptic Gregorian calendar, in years that begin in March.
 * gmtime_r would read the zone files. */
static void set_day(struct date *d, int64_t days)
{
    int64_t shifted = days + 719468; /* since 0000-03-01 */
    int64_t era = (shifted >= 0 ? shifted : shifted - 146096) / 146097;
    int64_t doe = shifted - era * 146097;
    int64_t yoe = (doe - doe / 1460 + doe / 36524 - doe / 146096) / 365;
    int64_t doy = doe - (365 * yoe + yoe / 4 - yoe / 100);
    int64_t month = (5 * doy + 2) / 153;

    d->day = (int)(doy - (153 * month + 2) / 5 + 1);
    d->month = (int)(month < 10 ? month + 3 : month - 9);
    d->year = (int)(yoe + era * 400 + (d->month <= 2 ? 1 : 0));
    d->weekday = (int)(((days + 4) % 7 + 7) % 7);
}

static struct date to_date(int64_t wall_ms)
{
    int64_t ms = wall_ms < WALL_MIN ? WALL_MIN : wall_ms > WALL_MAX ? WALL_MAX : wall_ms;
    int64_t in_day = ms % (DAY_S * 1000);
    struct date d = {0};

    if (in_day < 0)
        in_day += DAY_S * 1000;
    set_day(&d, (ms - in_day) / (DAY_S * 1000));
    d.ms = (int)(in_day % 1000);
    d.second = (int)(in_day / 1000 % 60);
    d.minute = (int)(in_day / 60000 % 60);
    d.hour = (int)(in_day / 3600000);
    return d;
}

/* Writes `value` in `digits` decimal digits and returns the place behind them. */
static char *put(char *at, int value, int digits)
{
    for (int i = digits - 1; i >= 0; i--) {
        at[i] = (char)('0' + value % 10);
        value /= 10;
    }
    return at + digits;
}

static char *put_time(char *at, const struct date *d)
{
    at = put(at, d->hour, 2);
    *at++ = ':';
    at = put(at, d->minute, 2);
    *at++ = ':';
    return put(at, d->second, 2);
}

void nk_clock_format(int64_t wall_ms, char out[NK_CLOCK_TEXT])
{
    struct date d = to_date(wall_ms);
    char *at = put(out, d.year, 4);

    *at++ = '-';
    at = put(at, d.month, 2);
    *at++ = '-';
    at = put(at, d.day, 2);
    *at++ = 'T';
    at = put_time(at, &d);
    *at++ = '.';
    at = put(at, d.ms, 3);
    *at++ = 'Z';
    *at = '\0';
}

static char *put_name(char *at, const char *names, int index)
{
    for (int i = 0; i < 3; i++)
        *at++ = names[index * 3 + i];
    return at;
}

void nk_clock_format_http(int64_t wall_ms, char out[30])
{
    struct date d = to_date(wall_ms);
    char *at = put_name(out, "SunMonTueWedThuFriSat", d.weekday);

    *at++ = ',';
    *at++ = ' ';
    at = put(at, d.day, 2);
    *at++ = ' ';
    at = put_name(at, "JanFebMarAprMayJunJulAugSepOctNovDec", d.month - 1);
    *at++ = ' ';
    at = put(at, d.year, 4);
    *at++ = ' ';
    at = put_time(at, &d);
    *at++ = ' ';
    at = put_name(at, "GMT", 0);
    *at = '\0';
}

void nk_clock_fake(uint64_t mono_ms, int64_t wall_ms)
{
    fake.on = true;
    fake.mono_ms = mono_ms;
    fake.wall_ms = wall_ms;
}

void nk_clock_real(void)
{
    fake.on = false;
}
