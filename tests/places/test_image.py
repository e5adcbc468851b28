"""The images themselves: one file to copy, and a sandbox of eight languages."""

import pytest

import engine

pytestmark = pytest.mark.place

CODE = {
    "python": "print(6 * 7)", "javascript": "console.log(6 * 7)",
    "typescript": "const n: number = 6 * 7; console.log(n)", "bash": "echo $((6 * 7))",
    "sh": "echo $((6 * 7))", "php": "<?php echo 6 * 7, \"\\n\";", "ruby": "puts 6 * 7",
    "go": "package main\nimport \"fmt\"\nfunc main() { fmt.Println(6 * 7) }\n",
}


@pytest.fixture(autouse=True)
def only_an_image(place):
    if place.name != "image":
        pytest.skip(f"{place.name} is made without an engine")


def test_the_binarys_image_holds_one_file(place):
    assert place.files_of(engine.BINARY_IMAGE) == ["sbin/nookd"]


def test_the_engine_finds_it_healthy(place):
    assert place.health() == 0


@pytest.mark.parametrize("language", CODE)
def test_a_language_runs(place, language):
    done = place.post("/v1/code", {"code": CODE[language], "language": language, "timeout": 120},
                      wait=150).json()
    assert (done.get("exit_code"), done.get("stdout")) == (0, "42\n"), done


def test_the_folders_belong_to_the_user(place):
    out = place.exec("stat -c '%U %n' /workspace /output /home/sandbox; id -un")["stdout"].split("\n")
    assert out == ["sandbox /workspace", "sandbox /output", "sandbox /home/sandbox", "sandbox", ""]
