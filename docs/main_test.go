// Package docs tests what the documents say about the repository: that links lead
// somewhere, that commands and examples work, that names and diagrams agree with the code.
package docs

import (
	"os"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/kernelgate/kernelgate/bot/cli"
)

// The tests read files of the whole repository, by their paths from its top.
type fromTop struct{ *testing.M }

func (m fromTop) Run() int {
	if err := os.Chdir(".."); err != nil {
		panic(err)
	}
	return m.M.Run()
}

// Commands in the documents find kernelgate on the path.
func TestMain(m *testing.M) {
	testscript.Main(fromTop{m}, map[string]func(){"kernelgate": func() { os.Exit(cli.Run(os.Args[1:], os.Stdout, os.Stderr)) }})
}
