// Package clitest runs the tests of a package in the repository's root, with the program on their path. It has no
// commands: the caller gives them.
package clitest

import (
	"io"
	"os"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
)

// Main runs the tests of m in the folder top, because they read files by their paths from there. Scripts and commands find
// kernelgate on the path: it is run.
func Main(m *testing.M, top string, run func(args []string, stdout, stderr io.Writer) int) {
	testscript.Main(inFolder{m, top}, map[string]func(){"kernelgate": func() { os.Exit(run(os.Args[1:], os.Stdout, os.Stderr)) }})
}

// inFolder changes the folder when the tests begin, and not before: the program runs in the folder that a script chooses.
type inFolder struct {
	*testing.M
	folder string
}

func (m inFolder) Run() int {
	if err := os.Chdir(m.folder); err != nil {
		panic(err)
	}
	return m.M.Run()
}
