package recordingstest

import (
	"encoding/base64"
	"encoding/binary"
	"fmt"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// Forms is how the recording may show in a text: its value, the right answer to it and the difference from the wrong one, in
// decimal, in hexadecimal digits of either byte order, and in base64, wherever it begins.
func Forms() []string {
	var all []string
	for _, value := range []float64{Planted, 2 * Planted, 2*Planted - 32} {
		all = append(all, fmt.Sprintf("%.6g", value), fmt.Sprintf("%.4g", value), fmt.Sprintf("%.3e", value))
		little := binary.LittleEndian.AppendUint32(nil, math.Float32bits(float32(value)))
		wide := binary.LittleEndian.AppendUint64(nil, math.Float64bits(value))
		all = append(all, fmt.Sprintf("%08x", math.Float32bits(float32(value))), fmt.Sprintf("%x", little), fmt.Sprintf("%016x", math.Float64bits(value)), fmt.Sprintf("%x", wide))
		for _, bytes := range []string{string(little), string(wide)} {
			all = append(all, bytes+bytes)
			for skipped := range len(bytes) { // a text in base64 may begin at any byte
				encoded := base64.StdEncoding.EncodeToString([]byte(strings.Repeat(bytes, 4)[skipped:]))
				all = append(all, encoded[:16])
			}
		}
	}
	return all
}

// CheckHidden reports the forms that a text has.
func CheckHidden(t testing.TB, what, text string) {
	t.Helper()
	lower := strings.ToLower(text)
	for _, form := range Forms() {
		if strings.Contains(text, form) || strings.Contains(lower, form) {
			t.Errorf("%s shows a recorded value as %q", what, form)
		}
	}
}

// CheckFiles does so for all files of a folder, and returns how many there are.
func CheckFiles(t testing.TB, dir string) (files int) {
	t.Helper()
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		text, err := os.ReadFile(path)
		files++
		CheckHidden(t, path, string(text))
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return files
}
