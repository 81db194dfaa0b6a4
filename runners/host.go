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

// Seed returns the given seed or, for 0, an unpredictable one.
func Seed(given uint64) uint64 {
	if given != 0 {
		return given
	}
	var seed [8]byte
	rand.Read(seed[:])
	return binary.NativeEndian.Uint64(seed[:])
}

// CPUName returns the model name of this machine's CPU.
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

// Load returns how busy this machine is, or nil if that is not available.
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
