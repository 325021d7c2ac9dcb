import pytest


@pytest.mark.filterwarnings("default")
def test_report_names_what_it_wrote(gatas, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "results").mkdir()
    (tmp_path / "results" / "odd.json").write_text("{")
    code, out, err = gatas("report")
    assert code == 0 and out == "report/report.html\nreport/report.md\n"
    assert err.count("\n") == 1 and err.startswith("warning: results/odd.json is left out")
    assert (tmp_path / "report" / "report.html").is_file()


def test_report_without_results_is_one_line(gatas, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    code, out, err = gatas("report", "--results", "nowhere")
    assert (code, out) == (1, "") and err.count("\n") == 1 and "nowhere is no folder" in err
