// Package docs tests the statements of the documents about the repository: that links have a
// target, that commands and examples work, and that names and diagrams agree with the code. It has
// tests only.
package docs

import (
	"testing"

	"github.com/kernelgate/kernelgate/bot/cli"
	"github.com/kernelgate/kernelgate/bot/cli/clitest"
)

// TestMain puts kernelgate on the path, for commands in the documents.
func TestMain(m *testing.M) {
	clitest.Main(m, "..", cli.Run)
}
