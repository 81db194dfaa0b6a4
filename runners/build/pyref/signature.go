package pyref

import (
	"bytes"
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/kernelgate/kernelgate/kernels/manifest"
	"github.com/kernelgate/kernelgate/runners/host/sandbox"
)

//go:embed signature.py
var signatureScript []byte

// CheckSignature compares the parameters of a reference with the manifest. It parses the reference and runs nothing of it, so that
// a Python without NumPy and PyTorch suffices. The error is a *Mistake where the reference is at fault.
func CheckSignature(ctx context.Context, m *manifest.Manifest, trusted string, getenv func(string) string) error {
	text, err := sourceOf(m, trusted)
	if err != nil {
		return err
	}
	python, err := Interpreter(ctx, getenv)
	if err != nil {
		return err
	}
	asked, err := json.Marshal(map[string]any{"text": string(text), "expression": m.Reference.Torch != "", "entry": m.Reference.Entry, "names": m.PythonNames()})
	if err != nil {
		return fmt.Errorf("asking for the reference's parameters: %w", err)
	}
	work, err := os.MkdirTemp("", "kernelgate-signature-")
	if err != nil {
		return fmt.Errorf("making room to look at the reference: %w", err)
	}
	defer os.RemoveAll(work)
	err = errors.Join(os.Chmod(work, 0o755), os.WriteFile(filepath.Join(work, "signature.py"), signatureScript, 0o644), os.WriteFile(filepath.Join(work, "reference.json"), asked, 0o644))
	if err != nil {
		return fmt.Errorf("making room to look at the reference: %w", err)
	}
	var out, log bytes.Buffer
	r, err := sandbox.Run(ctx, sandbox.Spec{
		Args: []string{python.Program, "-I", "-B", "/look/signature.py", "/look/reference.json"},
		Env:  []string{"PATH=/usr/bin:/bin", "LC_ALL=C.UTF-8"},
		Read: append(sandbox.SystemPaths(), python.Folders()...), Places: []sandbox.Place{{Host: work, Inside: "/look"}},
		Stdout: &out, Stderr: &log, Limits: sandbox.PythonReader.Limits(),
	})
	if err != nil {
		return fmt.Errorf("looking at the reference: %w", err)
	}
	var found reply
	if err := json.Unmarshal(out.Bytes(), &found); err != nil || !r.OK() {
		return fmt.Errorf("looking at the reference: Python cannot parse it: %s", strings.Join(strings.Fields(log.String()), " "))
	}
	if found.Error != "" {
		return &Mistake{Text: printable(found.Error), Line: found.Line}
	}
	return nil
}
