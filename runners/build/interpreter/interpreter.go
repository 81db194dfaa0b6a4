// Package interpreter finds the Python of this host, and asks it what it has. It runs no file of a repository, and installs
// nothing.
package interpreter

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"os/exec"
	"path/filepath"
)

// A Python is an interpreter as it describes itself. Its own packages are trusted; those of a checkout are not on its path.
type Python struct {
	Executable string   `json:"executable"` // as it was called: an environment's is a link, and finds its packages by its own place
	Real       string   `json:"real"`
	Prefix     string   `json:"prefix"`
	BasePrefix string   `json:"base_prefix"`
	Version    string   `json:"version"`
	Tag        string   `json:"tag"`   // such as cp311
	Sites      []string `json:"sites"` // folders of its packages

	Triton string `json:"triton"` // the folder of the package; "" where there is none
	NumPy  string `json:"numpy"`  // version; "" where there is none
	Torch  string `json:"torch"`  // version; "" where there is none

	TorchInclude string `json:"torch_include"` // folder of PyTorch's headers; "" where there is none
	Include      string `json:"include"`       // folder of Python's own headers
}

const question = `import sys, json, os, site, sysconfig, importlib.util, importlib.metadata
def version(name):
    if importlib.util.find_spec(name) is None: return ""
    try: return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError: return "unknown"
triton, torch = importlib.util.find_spec("triton"), importlib.util.find_spec("torch")
print(json.dumps({"executable": sys.executable, "real": os.path.realpath(sys.executable), "prefix": sys.prefix, "base_prefix": sys.base_prefix,
  "version": "%d.%d.%d" % sys.version_info[:3], "tag": "cp%d%d" % sys.version_info[:2], "sites": site.getsitepackages(),
  "triton": os.path.dirname(triton.origin) if triton and triton.origin else "", "numpy": version("numpy"), "torch": version("torch"),
  "torch_include": os.path.join(os.path.dirname(torch.origin), "include") if torch and torch.origin else "", "include": sysconfig.get_path("include")}))`

// Program is the path of the Python that KERNELGATE_PYTHON names, or of python3.
func Program(getenv func(string) string) (string, error) {
	name := cmp.Or(getenv("KERNELGATE_PYTHON"), "python3")
	program, err := exec.LookPath(name)
	if err != nil {
		return "", fmt.Errorf("there is no %s: %w", name, err)
	}
	return program, nil
}

// Ask has a Python describe itself.
func Ask(ctx context.Context, program string) (Python, error) {
	cmd := exec.CommandContext(ctx, program, "-I", "-c", question)
	cmd.Dir = "/"
	out, err := cmd.Output()
	var p Python
	if err == nil {
		err = json.Unmarshal(out, &p)
	}
	if err != nil {
		return Python{}, fmt.Errorf("asking %s for its packages: %w (is it Python 3?)", program, err)
	}
	return p, nil
}

// Folders are those of the installation and of what it is built on, which its programs must see. Some may be the system's.
func (p Python) Folders() []string {
	return []string{p.Prefix, p.BasePrefix, above(p.Executable), above(p.Real)}
}

// above is the folder that an installation with that program has to itself.
func above(program string) string { return filepath.Dir(filepath.Dir(program)) }
