package tensor

import (
	"math"
	"testing"

	"github.com/kernelgate/kernelgate/kernels/manifest"
	"github.com/kernelgate/kernelgate/policies/distribution"
)

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
		"unknown distribution": func() { Fill(make([]float64, 1), "gaussian", 0, "q", []int{1}) },
		"encode too short":     func() { Encode(manifest.F16, make([]byte, 3), make([]float64, 2)) },
		"decode too long":      func() { Decode(manifest.F16, make([]float64, 2), make([]byte, 6)) },
		"poison half element":  func() { Poison(manifest.F32, make([]byte, 6)) },
		"fill wrong shape":     func() { Fill(make([]float64, 5), distribution.Normal, 0, "q", []int{2, 3}) },
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
