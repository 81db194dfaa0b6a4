package pyref

import (
	"errors"
	"math"
	"strings"
	"testing"

	"github.com/kernelgate/kernelgate/policies/distribution"
)

// A file that imports PyTorch gets tensors, and an expression of the manifest needs no file.
func TestTorch(t *testing.T) {
	if python(t).Torch == "" {
		t.Skip("PyTorch is not installed for this Python: no wheel for the CPU alone is on PyPI, so that make setup fetches none")
	}
	const row = "reference: {source: reference.py, entry: gather}"
	for name, c := range map[string]struct {
		reference, source string
		near              float64
	}{
		"returned":   {row, "import torch\ndef gather(table, index, keep, sum, scale, w):\n    assert table.dtype == torch.float64 and index.dtype == torch.int64 and keep.dtype == torch.bool\n    y = table[index] * scale * keep[:, None] + w\n    return sum + y.sum(0), y\n", 1e-12},
		"written":    {row, "import torch\ndef gather(table, index, keep, sum, scale, w, y):\n    y.copy_(table[index] * scale * keep[:, None] + w)\n    sum += y.sum(0)\n", 1e-12},
		"expression": {`reference: {torch: "(sum + (table[index] * scale * keep[:, None] + w).sum(0), F.relu(table[index] * scale * keep[:, None] + w + 100) - 100)"}`, "", 1e-12},
		"float32":    {`reference: {source: reference.py, entry: gather, dtype: float32}`, "import torch\ndef gather(table, index, keep, sum, scale, w):\n    assert table.dtype == torch.float32\n    y = table[index] * scale * keep[:, None] + w\n    return sum + y.sum(0), y\n", 1e-5},
	} {
		t.Run(name, func(t *testing.T) {
			p, m, err := started(t, strings.Replace(manifestText, row, c.reference, 1), c.source, nil)
			if err != nil {
				t.Fatal(err)
			}
			in := problem(t, m, distribution.Normal, 3)
			got, err := p.Expected(in, false)
			if err != nil {
				t.Fatal(err)
			}
			sum, y := gathered(in, false)
			for i, want := range [][]float64{sum, y} {
				for k := range want {
					if math.Abs(got[i][k]-want[k]) > c.near {
						t.Fatalf("output %d[%d] is %v, want %v", i, k, got[i][k], want[k])
					}
				}
			}
		})
	}
	for expression, want := range map[string]string{
		"F.softmax(x, -1)": "raised NameError: name 'x' is not defined",
		"table[":           "is not Python: '[' was never closed",
		"table":            "returns one Tensor, and the manifest has 2 outputs (return sum, y)",
	} {
		p, m, err := started(t, strings.Replace(manifestText, row, `reference: {torch: "`+expression+`"}`, 1), "", nil)
		if err == nil {
			_, err = p.Expected(problem(t, m, distribution.Normal, 1), false)
		}
		if mistake, ok := errors.AsType[*Mistake](err); !ok || mistake.Text != want {
			t.Errorf("%s: %v, want %q", expression, err, want)
		}
	}
}
