#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/attr.h"
#include "code/images.h"
#include "code/versions.h"

static const char *type_of(const char *head)
{
    return nk_images_type((const uint8_t *)head, strlen(head));
}

static void images_are_known_by_their_first_bytes(void **state)
{
    (void)state;
    assert_string_equal(type_of("\x89PNG\r\n\x1a\n..."), "image/png");
    assert_string_equal(type_of("\xff\xd8\xff\xe0"), "image/jpeg");
    assert_string_equal(type_of("GIF87a"), "image/gif");
    assert_string_equal(type_of("GIF89a..."), "image/gif");
    assert_string_equal(type_of("RIFF1234WEBP"), "image/webp");
    assert_null(type_of("RIFF1234WAVE"));
    assert_null(type_of("\x89PNG\r\n"));
    assert_null(type_of("GIF88a"));
    assert_null(type_of(""));
}

static void svg_is_known_behind_what_xml_allows_before_it(void **state)
{
    static const char *const yes[] = {
        "<svg>",
        "<svg/>",
        "<svg xmlns='x'>",
        "<SVG >",
        " \r\n\t<svg\n>",
        "\xef\xbb\xbf<svg>",
        "<?xml version='1.0'?>\n<!-- a <svg> -->\n<!DOCTYPE svg>\n<svg>",
    };
    static const char *const no[] = {
        "<svg",      "<svgx>", "<html><svg>",        "svg",        "<", "<!",
        "<!--<svg>", "<?xml",  "<? ?><!DOCTYPE svg", "text <svg>",
    };

    (void)state;
    for (size_t i = 0; i < NK_COUNT(yes); i++)
        assert_string_equal(type_of(yes[i]), "image/svg+xml");
    for (size_t i = 0; i < NK_COUNT(no); i++)
        assert_null(type_of(no[i]));
}

static void a_version_is_the_first_number_with_a_point(void **state)
{
    static const char *const cases[][2] = {
        {"Python 3.11.2\n", "3.11.2"},
        {"v20.20.2\n", "20.20.2"},
        {"GNU bash, version 5.2.15(1)-release", "5.2.15"},
        {"go version go1.19.8 linux/amd64", "1.19.8"},
        {"PHP 8.2.36 (cli) (built: 1)", "8.2.36"},
        {"tool 12 of 3.", ""},
        {"ends with 1.5.", "1.5"},
        {".5 1.x 2..", ""},
        {"", ""},
        {"no number", ""},
    };
    char out[NK_VERSIONS_TEXT];

    (void)state;
    for (size_t i = 0; i < NK_COUNT(cases); i++) {
        nk_versions_parse(cases[i][0], strlen(cases[i][0]), out);
        assert_string_equal(out, cases[i][1]);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(images_are_known_by_their_first_bytes),
        cmocka_unit_test(svg_is_known_behind_what_xml_allows_before_it),
        cmocka_unit_test(a_version_is_the_first_number_with_a_point),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
