def test_check_prints_what_is_wrong_and_exits_with_1(gatas, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for folder in ("docs", "results"):
        (tmp_path / folder).mkdir()
    (tmp_path / "README.md").write_text("Nothing was measured.\n")
    code, out, _ = gatas("reproduce", "check")
    assert code == 0 and out == "0 figures and 0 tables of README and docs, 0 results: all as their files have them.\n"
    (tmp_path / "docs" / "a.md").write_text("It takes 3 s.\n")
    code, out, _ = gatas("reproduce", "check")
    assert code == 1 and out.startswith("docs/a.md:1: 3 s has no source.") and out.endswith("0 results: 1 problems.\n")


def test_check_outside_of_a_checkout_is_one_line(gatas, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    code, out, err = gatas("reproduce", "check")
    assert (code, out) == (1, "") and err.count("\n") == 1 and "README.md is not there" in err
