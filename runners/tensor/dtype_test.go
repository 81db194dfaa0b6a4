package tensor

import (
	"math"
	"strings"
	"testing"
)

func TestParseDType(t *testing.T) {
	sizes := map[string]int{
		"e4m3": 1, "e5m2": 1, "f16": 2, "bf16": 2, "f32": 4, "f64": 8, "i8": 1, "u8": 1, "i32": 4, "i64": 8,
	}
	for name, size := range sizes {
		d, err := ParseDType(name)
		if err != nil {
			t.Errorf("ParseDType(%q): %v", name, err)
			continue
		}
		if d.Size() != size {
			t.Errorf("%s: size %d, want %d", name, d.Size(), size)
		}
		if want := strings.ContainsAny(name, "ef"); d.Float() != want {
			t.Errorf("%s: Float() = %v, want %v", name, d.Float(), want)
		}
	}
	if len(DTypes()) != len(sizes) {
		t.Errorf("DTypes() has %d formats, want %d", len(DTypes()), len(sizes))
	}

	for _, name := range []string{"", "fp8", "E4M3", "f32 "} {
		_, err := ParseDType(name)
		if err == nil {
			t.Errorf("ParseDType(%q) succeeded", name)
			continue
		}
		for known := range sizes {
			if !strings.Contains(err.Error(), known) {
				t.Errorf("ParseDType(%q): %q does not list %s", name, err, known)
			}
		}
	}
}

func TestElements(t *testing.T) {
	for _, test := range []struct {
		name  string
		shape []int
		want  int
		fails bool
	}{
		{"scalar", nil, 1, false},
		{"vector", []int{7}, 7, false},
		{"mission", []int{1, 8, 512, 64}, 262144, false},
		{"empty", []int{4, 0, 64}, 0, false},
		{"negative", []int{4, -1}, 0, true},
		{"overflow", []int{math.MaxInt / 4, 3}, 0, true},
		{"overflow beside an empty axis", []int{0, math.MaxInt / 4, 3}, 0, true},
	} {
		t.Run(test.name, func(t *testing.T) {
			got, err := Elements(test.shape)
			if got != test.want || (err != nil) != test.fails {
				t.Errorf("Elements(%v) = %d, %v", test.shape, got, err)
			}
		})
	}
}

func TestBugsOfTheCallerPanic(t *testing.T) {
	for name, call := range map[string]func(){
		"unknown format":       func() { DType("f8").Size() },
		"unknown distribution": func() { Fill(make([]float64, 1), "gaussian", 0, "q", []int{1}) },
		"encode too short":     func() { Encode(F16, make([]byte, 3), make([]float64, 2)) },
		"decode too long":      func() { Decode(F16, make([]float64, 2), make([]byte, 6)) },
		"poison half element":  func() { Poison(F32, make([]byte, 6)) },
		"fill wrong shape":     func() { Fill(make([]float64, 5), Normal, 0, "q", []int{2, 3}) },
	} {
		t.Run(name, func(t *testing.T) {
			defer func() {
				if recover() == nil {
					t.Error("no panic")
				}
			}()
			call()
		})
	}
}
