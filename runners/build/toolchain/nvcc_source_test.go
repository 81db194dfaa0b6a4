package toolchain

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/kernelgate/kernelgate/kernels/manifest"
)

// The folder of the sources is a stranger's: a link may lead to a device, and a text may be made to be searched for ever.
func TestEntryLineOfHostileSources(t *testing.T) {
	dir := folder(t, map[string]string{"k.cu": kernelText, "many.cu": strings.Repeat("__global__ ", 300_000)})
	for name, target := range map[string]string{"zero.cu": "/dev/zero", "outside.cu": "../k.cu", "inside.cu": "k.cu", "self.cu": "self.cu", "dir.cu": "."} {
		if err := os.Symlink(target, filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	k, err := manifest.ParseEntry("k")
	if err != nil {
		t.Fatal(err)
	}
	for source, want := range map[string]int{"k.cu": 1, "inside.cu": 1, "zero.cu": 0, "outside.cu": 0, "self.cu": 0, "dir.cu": 0, "many.cu": 0, "missing.cu": 0} {
		if got := entryLines(NVCCBuild{Dir: dir, Source: source}, []manifest.Entry{k})[0]; got != want {
			t.Errorf("%s: line %d, want %d", source, got, want)
		}
	}
}
