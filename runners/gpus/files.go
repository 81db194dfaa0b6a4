package gpus

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// Files is what a program of its own needs to reach the GPU, if the host has any: its device file and those that belong to no
// GPU. The zero GPU has all of them. A program that is given one GPU could otherwise load the others, on which somebody measures.
func (g GPU) Files(dev string) []string {
	files, _ := filepath.Glob(filepath.Join(dev, "nvidia*")) // the pattern is right
	return slices.DeleteFunc(files, func(file string) bool {
		info, err := os.Stat(file)
		if err != nil || info.Mode()&os.ModeCharDevice == 0 {
			return true
		}
		number := strings.TrimPrefix(filepath.Base(file), "nvidia")
		_, notOne := strconv.ParseUint(number, 10, 16)
		return g.UUID != "" && g.Minor >= 0 && notOne == nil && number != fmt.Sprint(g.Minor)
	})
}
