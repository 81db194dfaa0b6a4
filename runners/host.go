package runners

import (
	"bufio"
	"crypto/rand"
	"encoding/binary"
	"os"
	"strconv"
	"strings"

	"github.com/kernelgate/kernelgate/gates"
)

// Seed is the one that was given or, for 0, one that nobody knows before.
func Seed(given uint64) uint64 {
	if given != 0 {
		return given
	}
	var seed [8]byte
	rand.Read(seed[:])
	return binary.NativeEndian.Uint64(seed[:])
}

// CPUName is what this machine's CPU calls itself.
func CPUName() string {
	f, err := os.Open("/proc/cpuinfo")
	if err != nil {
		return "CPU"
	}
	defer f.Close()
	for lines := bufio.NewScanner(f); lines.Scan(); {
		if name, value, ok := strings.Cut(lines.Text(), ":"); ok && strings.TrimSpace(name) == "model name" {
			return strings.TrimSpace(value)
		}
	}
	return "CPU"
}

// Load is how busy this machine is; nil where it does not tell.
func Load() *gates.Fitness {
	text, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		return nil
	}
	first, _, _ := strings.Cut(string(text), " ")
	average, err := strconv.ParseFloat(first, 64)
	if err != nil {
		return nil
	}
	return &gates.Fitness{Load: average}
}
