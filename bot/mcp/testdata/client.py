# Uses the client against the server of TestPythonClient.
import io
import tarfile

import kernelgate


def tarball(name: str, text: str) -> bytes:
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w:gz") as archive:
        entry = tarfile.TarInfo(name)
        entry.size = len(text.encode())
        archive.addfile(entry, io.BytesIO(text.encode()))
    return packed.getvalue()


broken = kernelgate.check("sdpa_cpu", files={"sdpa.c": "this is no C\n"})
assert broken.verdict == "DEFER" and broken.reason == "build" and not broken.passed, broken
assert broken.failures[0].kind == "compile" and broken.failures[0].first_bad["line"] == 1, broken.failures
assert "<b>DEFER</b>" in broken._repr_html_() and broken._repr_markdown_().startswith("DEFER (build)"), broken.text

client = kernelgate.Client()
assert client.describe()["kernels"] == ["kernels/sdpa_cpu"]
assert client.describe("sdpa_cpu")["shapes"][0]["roofline_us"] > 0
assert [t["outcome"] for t in client.history("sdpa_cpu")] == ["DEFER"]

packed = client.check("sdpa_cpu", tarball=tarball("./sdpa.c", "this is no C\n"))
assert packed.reason == "build" and [t["outcome"] for t in client.history("sdpa_cpu")] == ["DEFER"], "a tarball is its files"

table = kernelgate._result(
    {
        "kernel": "k", "outcome": "PASS", "summary": "<faster>", "later": 1,
        "shapes": [{"shape": "a<b", "role": "target", "status": "pass", "baseline_us": 2.0, "later": 2, "speedup": {"low": 0.1, "mid": 0.2, "high": 0.3}}],
    },
    "PASS",
)
assert table.passed and "&lt;faster&gt;" in table._repr_html_() and "<td>+20.0% [+10.0%, +30.0%]</td>" in table._repr_html_(), table._repr_html_()
steps = kernelgate._result(
    {
        "kernel": "k", "outcome": "PASS", "summary": "faster",
        "weighted": {"role": "info", "baseline_us": 64.0},
        "weighted_warm": {"role": "target", "status": "pass", "baseline_us": 28.0, "speedup": {"mid": 0.1}, "saved_us": 2.5},
    },
    "PASS",
)
assert [s.shape for s in steps.sums] == ["all launches of a warm step"] and "<td>28</td><td></td><td>+10.0%</td>" in steps._repr_html_(), steps._repr_html_()

for wrong, says in (
    (lambda: client.check("sdpa_cpu", files={"reference.c": "x"}), "cannot be changed"),
    (lambda: client.check("sdpa_cpu", tarball=tarball("../reference.c", "x")), "not a name below the kernel's folder"),
    (lambda: client.check("sdpa_cpu", tarball=b"x"), "was cut off, or it is no tar"),
    (lambda: kernelgate.Client(token="not one of the tokens").describe(), "401"),
):
    try:
        wrong()
    except kernelgate.Refused as refused:
        assert says in str(refused), refused
    else:
        raise AssertionError(says)
print("fine")
