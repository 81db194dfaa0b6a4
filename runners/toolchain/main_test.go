package toolchain

import (
	"os"
	"testing"

	"github.com/kernelgate/kernelgate/runners/sandbox"
)

func TestMain(m *testing.M) {
	sandbox.Init()
	os.Exit(m.Run())
}
