package output

import (
	"strings"
	"testing"
)

func TestHeaderRemedy(t *testing.T) {
	const folder = "add its folder to include"
	for message, want := range map[string]string{
		"curand_kernel.h: No such file or directory":              "include: [<curand>]",
		`cannot open source file "cublas_v2.h"`:                   "--include cublas=FOLDER",
		"'cutlass/numeric_types.h' file not found":                "include: [<cutlass>]",
		"cute/tensor.hpp: No such file or directory":              "include: [<cutlass>]",
		"common/tile.cuh: No such file or directory":              folder,
		"tile.cuh: No such file or directory":                     folder,
		"optionl: No such file or directory":                      "",
		`identifier "curand" is undefined`:                        "",
		"expected ';' before '}' token":                           "",
		"k.cu: a long story that ends: No such file or directory": "",
	} {
		if got := headerRemedy(message); want == "" && got != "" || !strings.Contains(got, want) {
			t.Errorf("%s: %q, want %q", message, got, want)
		}
	}
}
