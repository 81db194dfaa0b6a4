// Package docs tests the statements of the documents about the repository: that links have a
// target, that commands and examples work, and that names and diagrams agree with the code. It has
// tests only.
package docs

import (
	"os"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/kernelgate/kernelgate/bot/cli"
)

// fromTop runs the tests in the repository's root, because they read files by their paths from
// there.
type fromTop struct{ *testing.M }

func (m fromTop) Run() int {
	if err := os.Chdir(".."); err != nil {
		panic(err)
	}
	return m.M.Run()
}

// TestMain puts kernelgate on the path, for commands in the documents.
func TestMain(m *testing.M) {
	testscript.Main(fromTop{m}, map[string]func(){"kernelgate": func() { os.Exit(cli.Run(os.Args[1:], os.Stdout, os.Stderr)) }})
}
