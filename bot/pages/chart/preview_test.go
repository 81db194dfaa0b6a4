package chart

import (
	"bytes"
	"image/png"
	"strings"
	"testing"
)

// TestPreview checks that a preview has the size that sites ask for, has the colour of its verdict, and can be drawn of any text.
func TestPreview(t *testing.T) {
	rows := []Interval{
		{Label: "mission", Value: 0.18, Lower: pointer(0.17), Upper: pointer(0.195), Goal: pointer(0.1), Class: "pass", Text: "+18.0 % (≥ +10 %)"},
		{Label: "long", Value: -0.33, Lower: pointer(-0.34), Upper: pointer(-0.32), Goal: pointer(-0.02), Class: "fail", Text: "1.49× slower"},
		{Label: "free", Value: 0.18},
	}
	for name, p := range map[string]Preview{
		"a verdict":     {Word: "PASS", Class: "pass", Title: "sdpa is 18.0 % faster on mission: 57.6 → 46.1 µs", Rows: rows, Foot: "org/kernels #7"},
		"nothing":       {},
		"only a word":   {Word: "ERROR", Class: "error"},
		"many words":    {Word: strings.Repeat("W", 500), Class: "<b>", Title: strings.Repeat("a long name ", 200), Foot: strings.Repeat("x", 999), Rows: []Interval{{Label: strings.Repeat("漢", 300), Text: "\x00\xff", Value: 1e308, Goal: pointer(-1e308)}}},
		"many rows":     {Rows: make([]Interval, 500), Dark: true},
		"rows in a run": {Word: "PASS", Rows: make([]Interval, 500)},
	} {
		data, err := p.PNG()
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		picture, err := png.Decode(bytes.NewReader(data))
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		size := picture.Bounds().Size()
		if size.X != 1200 || p.Word != "" && size.Y != 630 || size.Y > 1300 {
			t.Errorf("%s: %v pixels", name, size)
		}
		if again, _ := p.PNG(); !bytes.Equal(again, data) {
			t.Errorf("%s: two pictures of the same data differ", name)
		}
	}
	data, err := Preview{Word: "PASS", Class: "pass"}.PNG()
	if err != nil {
		t.Fatal(err)
	}
	picture, err := png.Decode(bytes.NewReader(data))
	if err != nil {
		t.Fatal(err)
	}
	if r, g, b, _ := picture.At(4, 300).RGBA(); r>>8 != 0x11 || g>>8 != 0x63 || b>>8 != 0x29 {
		t.Errorf("the edge of a PASS has the colour %x %x %x", r>>8, g>>8, b>>8)
	}
}
