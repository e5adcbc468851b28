#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <string.h>

#include "base/attr.h"
#include "base/secret.h"

static void hash(const void *data, size_t len, size_t step, char out[65])
{
    const uint8_t *p = data;
    struct nk_sha256 h;
    uint8_t digest[32];

    nk_sha256_init(&h);
    for (size_t at = 0; at < len; at += step)
        nk_sha256_add(&h, p + at, len - at < step ? len - at : step);
    nk_sha256_end(&h, digest);
    for (size_t i = 0; i < sizeof digest; i++)
        (void)snprintf(out + 2 * i, 3, "%02x", digest[i]);
}

/* The examples of FIPS 180-4 and of the NIST test vectors. */
static void the_published_vectors_hold(void **state)
{
    static const char *const pairs[][2] = {
        {"", "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"},
        {"abc", "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"},
        {"abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq",
         "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1"},
        {"abcdefghbcdefghicdefghijdefghijkefghijklfghijklmghijklmnhijklmnoijklmnopjklmnopqklmnopqrl"
         "m"
         "nopqrsmnopqrstnopqrstu",
         "cf5b16a778af8380036ce59e7b0492370b249b11e8f07a51afac45037afee9d1"},
    };
    char hex[65];

    (void)state;
    for (size_t i = 0; i < NK_COUNT(pairs); i++) {
        hash(pairs[i][0], strlen(pairs[i][0]), 1000, hex);
        assert_string_equal(hex, pairs[i][1]);
    }
}

static void a_million_letters_hash_the_same_in_any_pieces(void **state)
{
    static char million[1000000];
    static const size_t steps[] = {1000000, 63, 64, 65, 127, 4099};
    char hex[65];

    (void)state;
    memset(million, 'a', sizeof million);
    for (size_t i = 0; i < NK_COUNT(steps); i++) {
        hash(million, sizeof million, steps[i], hex);
        assert_string_equal(hex,
                            "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
    }
}

/* Padding changes its shape at 55, 56 and 64 bytes; one byte at a time must give the same. */
static void padding_is_right_at_every_length(void **state)
{
    char data[200], once[65], bytewise[65], before[65] = "";

    (void)state;
    memset(data, 'x', sizeof data);
    for (size_t n = 0; n <= sizeof data; n++) {
        hash(data, n, 1000, once);
        hash(data, n, 1, bytewise);
        assert_string_equal(once, bytewise);
        assert_string_not_equal(once, before);
        memcpy(before, once, sizeof before);
    }
}

static void lengths_around_a_block_match_another_implementation(void **state)
{
    static const struct {
        size_t len;
        const char *hex;
    } want[] = {
        {55, "d5e285683cd4efc02d021a5c62014694958901005d6f71e89e0989fac77e4072"},
        {56, "04c26261370ee7541549d16dee320c723e3fd14671e66a099afe0a377c16888e"},
        {63, "75220b47218278e656f2013bb8f0c455a25eaf01e86c64924e9d48d89776d6f2"},
        {64, "7ce100971f64e7001e8fe5a51973ecdfe1ced42befe7ee8d5fd6219506b5393c"},
    };
    char data[64], hex[65];

    (void)state;
    memset(data, 'x', sizeof data);
    for (size_t i = 0; i < NK_COUNT(want); i++) {
        hash(data, want[i].len, 1000, hex);
        assert_string_equal(hex, want[i].hex);
    }
}

static void only_the_same_token_is_equal(void **state)
{
    struct nk_secret s = {0};

    (void)state;
    assert_false(nk_secret_equal(&s, "", 0));
    nk_secret_set(&s, "token", 5);
    assert_true(nk_secret_equal(&s, "token", 5));
    assert_false(nk_secret_equal(&s, "token", 4));
    assert_false(nk_secret_equal(&s, "tokem", 5));
    assert_false(nk_secret_equal(&s, "token\0", 6));
    nk_secret_set(&s, "other", 5);
    assert_false(nk_secret_equal(&s, "token", 5));
    assert_true(nk_secret_equal(&s, "other", 5));
}

static void an_unset_secret_equals_nothing(void **state)
{
    struct nk_secret s = {0};
    struct nk_secret set;

    (void)state;
    nk_secret_set(&set, "t", 1);
    memcpy(s.digest, set.digest, sizeof s.digest);
    assert_false(nk_secret_equal(&s, "t", 1));
}

static void wiped_memory_is_zero(void **state)
{
    char memory[32], zero[32] = {0};

    (void)state;
    memset(memory, 's', sizeof memory);
    nk_secret_wipe(memory, sizeof memory);
    assert_memory_equal(memory, zero, sizeof zero);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_published_vectors_hold),
        cmocka_unit_test(a_million_letters_hash_the_same_in_any_pieces),
        cmocka_unit_test(padding_is_right_at_every_length),
        cmocka_unit_test(lengths_around_a_block_match_another_implementation),
        cmocka_unit_test(only_the_same_token_is_equal),
        cmocka_unit_test(an_unset_secret_equals_nothing),
        cmocka_unit_test(wiped_memory_is_zero),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
