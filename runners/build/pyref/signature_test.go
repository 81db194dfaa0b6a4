package pyref

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/kernelgate/kernelgate/kernels/manifest"
)

// Without the packages of a reference, its parameters are compared with the manifest. Nothing of the reference runs.
func TestCheckSignature(t *testing.T) {
	if _, err := Interpreter(t.Context(), os.Getenv); err != nil && os.Getenv("CI") == "" {
		t.Skip(err)
	}
	const row = "reference: {source: reference.py, entry: gather}"
	const has = "(it has table, index, keep, sum, scale, D, w, V, T, y)"
	for name, c := range map[string]struct {
		source, expression string
		says               string
		line               int
	}{
		"right":           {source: "import torch\nraise SystemExit('it runs')\ndef gather(table, index, scale, y, sum, V, *, w, eps=1): ...\n"},
		"every name":      {source: "def gather(**all): ...\n"},
		"a decorator":     {source: "import torch\n@torch.compile\ndef gather(size): ...\n"},
		"assigned":        {source: "import torch\ngather = torch.compile(lambda size: 1)\n"},
		"imported":        {source: "from torch.nn.functional import relu as gather\n"},
		"all of a module": {source: "from torch import *\n"},
		"syntax":          {source: "import torch\ndef gather(table):\n    return 2 *\n", says: "is not Python: invalid syntax", line: 3},
		"no function":     {source: "def scatter(table): ...\nclass Model: ...\n", says: "has no function gather (write the entry as one of these, or define it: scatter)"},
		"no such name":    {source: "import torch\n\ndef gather(table, size): ...\n", says: "takes size, which the manifest does not have " + has, line: 3},
		"a keyword":       {source: "def gather(table, *, size): ...\n", says: "takes size, which the manifest does not have " + has, line: 1},
		"its scales":      {source: "def gather(w, w_scale): ...\n", says: "takes w_scale, which the manifest does not have " + has, line: 1},
		"several":         {source: "def gather(*all): ...\n", says: "takes *all: arguments are passed by name (name them)", line: 1},
		"by position":     {source: "def gather(table, /): ...\n", says: "takes table by its position: arguments are passed by name (remove the / from its parameters)", line: 1},
		"a file is gone":  {says: "is not there (add the file, or write its name in the manifest)"},
		"expression":      {expression: "(sum + F.relu(table[index]).sum(0), torch.stack([v * math.pi for v in table[index]]))"},
		"a lambda":        {expression: "(lambda a, b: (a, b))(sum, table[index]) if len(index) > T else max(sum, D)"},
		"another name":    {expression: "F.softmax(x, -1)", says: "uses x, which the manifest does not have (it has table, index, keep, sum, scale, D, w, V, T)"},
		"its own output":  {expression: "(sum, y)", says: "uses y, which the manifest does not have (it has table, index, keep, sum, scale, D, w, V, T)"},
		"half of it":      {expression: "table[", says: "is not Python: '[' was never closed"},
	} {
		t.Run(name, func(t *testing.T) {
			text := manifestText
			if c.expression != "" {
				text = strings.Replace(text, row, `reference: {torch: "`+c.expression+`"}`, 1)
			}
			m, err := manifest.Parse(manifest.FileName, []byte(text))
			if err != nil {
				t.Fatal(err)
			}
			trusted := t.TempDir()
			if c.source != "" {
				write(t, filepath.Join(trusted, "reference.py"), c.source)
			}
			err = CheckSignature(t.Context(), m, trusted, os.Getenv)
			mistake, _ := errors.AsType[*Mistake](err)
			if mistake == nil {
				mistake = &Mistake{}
			}
			if c.says == "" && err != nil || mistake.Text != c.says || mistake.Line != c.line {
				t.Errorf("%v, want %q in line %d", err, c.says, c.line)
			}
		})
	}
}
