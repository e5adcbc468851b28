from boxes import start_box  # noqa: F401: a fixture
