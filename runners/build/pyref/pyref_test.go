package pyref

import (
	"errors"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/kernelgate/kernelgate/kernels/manifest"
	"github.com/kernelgate/kernelgate/policies/distribution"
	"github.com/kernelgate/kernelgate/runners/tensor"
)

const manifestText = `version: 1
name: gather
mode: cpu
entry: gather
arguments:
  - {name: table, dtype: f16, access: in, shape: [V, D]}
  - {name: index, dtype: i32, access: in, shape: [T], init: 0..V-1}
  - {name: keep, dtype: bool, access: in, shape: [T]}
  - {name: sum, dtype: f32, access: inout, shape: [D]}
  - {name: y, dtype: f32, access: out, shape: [T, D]}
  - {name: scale, dtype: f32, access: scalar, value: 1/3}
  - {name: D, dtype: i32, access: scalar, value: D}
  - {name: w, dtype: e4m3, access: in, shape: [D], quantize: {scale: w_scale}}
  - {name: w_scale, dtype: f32, access: in, shape: [1]}
reference: {source: reference.py, entry: gather}
tolerance: {abs: 0.001}
shapes: {small: {V: 7, T: 5, D: 4}}
source: gather.c
`

// python finds one for a test. In CI, where make setup has fetched NumPy, there must be one.
func python(t testing.TB) *Python {
	t.Helper()
	p, err := Find(t.Context(), os.Getenv)
	if err != nil && os.Getenv("CI") == "" {
		t.Skipf("no Python with NumPy: %v", err)
	}
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// started is the process of a reference with a text.
func started(t testing.TB, manifestText, source string, change func(*Spec)) (*Process, *manifest.Manifest, error) {
	t.Helper()
	m, err := manifest.Parse(manifest.FileName, []byte(manifestText))
	if err != nil {
		t.Fatal(err)
	}
	s := Spec{Manifest: m, Trusted: t.TempDir(), Scratch: t.TempDir(), Python: python(t)}
	if source != "" {
		write(t, filepath.Join(s.Trusted, "reference.py"), source)
	}
	if change != nil {
		change(&s)
	}
	p, err := Start(t.Context(), s)
	if err != nil {
		return nil, m, err
	}
	t.Cleanup(p.Close)
	return p, m, p.Ready()
}

func write(t testing.TB, file, text string) {
	t.Helper()
	if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

func problem(t testing.TB, m *manifest.Manifest, dist distribution.Kind, seed uint64) *tensor.Problem {
	t.Helper()
	p, err := tensor.NewProblem(m, m.Shapes[0], nil, dist, seed)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// gathered is what the reference of the test should compute.
func gathered(p *tensor.Problem, original bool) (sum, y []float64) {
	by := map[string][]float64{}
	for _, a := range p.Args {
		by[a.Name] = a.Real
		if original {
			by[a.Name] = a.Original
		}
	}
	scale := float64(float32(1.0 / 3))
	sum = append([]float64{}, by["sum"]...)
	for t, row := range by["index"] {
		for d := range 4 {
			v := by["table"][4*int(row)+d]*scale*by["keep"][t] + by["w"][d]
			y = append(y, v)
			sum[d] += v
		}
	}
	return sum, y
}

const (
	returning = `import numpy as np

def gather(table, index, keep, sum, scale, w, T):
    assert table.dtype == np.float64 and index.dtype == np.int64 and keep.dtype == np.bool_
    assert isinstance(scale, float) and isinstance(T, int) and index.shape == (T,)
    y = table[index] * scale * keep[:, None] + w
    return %s
`
	writing = `def gather(table, index, keep, sum, scale, w, y, **others):
    assert others == {"V": 7, "T": 5, "D": 4}, others
    y[:] = table[index] * scale * keep[:, None] + w
    sum += y.sum(0)
    print("printed")
`
)

// The outputs come back in the manifest's order, however the function hands them over, and inputs are the kernel's bits.
func TestExpected(t *testing.T) {
	for name, source := range map[string]string{
		"a tuple":        strings.ReplaceAll(returning, "%s", "sum + y.sum(0), y"),
		"a dict":         strings.ReplaceAll(returning, "%s", `{"y": y, "sum": sum + y.sum(0)}`),
		"written arrays": writing,
	} {
		t.Run(name, func(t *testing.T) {
			p, m, err := started(t, manifestText, source, nil)
			if err != nil {
				t.Fatal(err)
			}
			for seed := range uint64(3) {
				in := problem(t, m, distribution.Normal, seed)
				for _, original := range []bool{false, true} {
					got, err := p.Expected(in, original)
					if err != nil {
						t.Fatal(err)
					}
					sum, y := gathered(in, original)
					for i, want := range [][]float64{sum, y} {
						for k := range want {
							if math.Abs(got[i][k]-want[k]) > 1e-12 {
								t.Fatalf("output %d[%d] is %v, want %v (original %v)", i, k, got[i][k], want[k], original)
							}
						}
					}
				}
			}
		})
	}
}

// A mistake in the reference is told with the line of its file.
func TestMistakes(t *testing.T) {
	const head = "def gather(table, sum, T, D):\n"
	for name, c := range map[string]struct {
		source, want string
		line         int
	}{
		"no file":        {"", "is not there (add the file, or write its name in the manifest)", 0},
		"no Python":      {"def gather(table:\n", "is not Python: '(' was never closed", 1},
		"no function":    {"def scatter(): pass\ndef _x(): pass\n", "has no function gather (write the entry as one of these, or define it: _x, scatter)", 0},
		"no package":     {"import nothing_here\n", "raised ModuleNotFoundError: No module named 'nothing_here'", 1},
		"an exception":   {head + "    z = table\n    return z @ z\n", "raised ValueError: matmul: Input operand 1 has a mismatch", 3},
		"a parameter":    {"\n\ndef gather(table, weights):\n    return table\n", "takes weights, which the manifest does not have (it has table, index, keep, sum, y, scale, D, w, T, V)", 3},
		"by position":    {"def gather(table, /):\n    return table\n", "takes table by its position: arguments are passed by name (remove the / from its parameters)", 1},
		"nothing":        {head + "    return\n", "returns nothing and has no parameter y to write to (return sum, y, or take it as a parameter)", 1},
		"one of two":     {head + "    return sum\n", "returns one ndarray, and the manifest has 2 outputs (return sum, y)", 1},
		"three of two":   {head + "    return sum, sum, sum\n", "returns 3 arrays, and the manifest has 2 outputs (return sum, y)", 1},
		"other names":    {head + "    return {'sum': sum, 'z': sum}\n", "returns sum, z (return sum, y)", 1},
		"another shape":  {head + "    return sum, table\n", "returns y of shape [7, 4], and the manifest's is [5, 4]", 1},
		"text":           {head + "    return sum, 'y'\n", "returns a str for y (return an array of numpy)", 1},
		"complex":        {head + "    return sum, table[:5] * 1j\n", "returns an array of complex128 (return real numbers)", 0},
		"NaN":            {head + "    return sum, table[:5] * float('nan')\n", "returns NaN in y for finite inputs on small (V=7 T=5 D=4)", 0},
		"an exit":        {"import sys\n" + head + "    sys.exit(3)\n", "raised SystemExit: 3", 3},
		"a sudden exit":  {"import os\n" + head + "    print('so long', flush=True)\n    os._exit(3)\n", "ended with exit code 3: so long", 0},
		"a crash":        {"import ctypes\n" + head + "    ctypes.string_at(0)\n", "ended by segmentation fault", 0},
		"a forged reply": {"import os\n" + head + "    os.write(4, b'\\xff\\xff\\xff\\x7f')\n    return sum, table[:5]\n", "answers with something else than its outputs (do not write to descriptor 4)", 0},
		"a hang":         {head + "    while True: pass\n", "takes longer than 2s on small (V=7 T=5 D=4) (make it faster, or the shape smaller)", 0},
		"many prints":    {head + "    while True: print('x' * 100000)\n", "prints more than 8 MiB (print less)", 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p, m, err := started(t, manifestText, c.source, func(s *Spec) {
				if strings.HasPrefix(name, "a hang") {
					s.Timeout = 2 * time.Second
				}
			})
			if err == nil {
				_, err = p.Expected(problem(t, m, distribution.Normal, 1), false)
			}
			mistake, ok := errors.AsType[*Mistake](err)
			if !ok || !strings.HasPrefix(mistake.Text, c.want) || mistake.Line != c.line {
				t.Errorf("%#v, want %q at line %d", err, c.want, c.line)
			}
		})
	}
}

// Infinities and zeros may make a NaN that the kernel makes as well.
func TestNaNOfSpecialInputs(t *testing.T) {
	p, m, err := started(t, manifestText, "def gather(table, sum, T):\n    return sum * float('nan'), table[:T] * float('nan')\n", nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := p.Expected(problem(t, m, distribution.Zero, 1), false); err != nil {
		t.Error(err)
	}
}

// A link in place of the reference could lead to a file of the candidate.
func TestLinkIsNoReference(t *testing.T) {
	_, _, err := started(t, manifestText, "", func(s *Spec) {
		write(t, filepath.Join(s.Trusted, "other.py"), "def gather(sum, table): return sum, table[:5]\n")
		if err := os.Symlink("other.py", filepath.Join(s.Trusted, "reference.py")); err != nil {
			t.Fatal(err)
		}
	})
	if err == nil || err.Error() != "is no file of at most 1 MiB (write the reference into one file)" {
		t.Error(err)
	}
}
