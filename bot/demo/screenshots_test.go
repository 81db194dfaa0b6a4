package demo

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"image"
	"image/color"
	"image/png"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"testing"

	"github.com/kernelgate/kernelgate/bot/pages/browser"
)

var screenshots = flag.String("screenshots", "", "write the documents' pictures into this folder (make screenshots)")

// TestScreenshots takes the screenshots of the demo for the documentation, with real measurements.
// It is not a test, and it runs only if a folder is given.
func TestScreenshots(t *testing.T) {
	if *screenshots == "" {
		t.Skip("no folder given; see make screenshots")
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	out := &audience{}
	out.on = map[string]func(string){"  pages    ": func(text string) {
		defer cancel()
		m := regexp.MustCompile(`(?m)^  GitHub   (\S+)\n  pages    (\S+)$`).FindStringSubmatch(text)
		if m == nil {
			t.Errorf("no addresses in\n%s", text)
			return
		}
		takeAll(t, m[1], m[2])
	}}
	_, _, right, err := run(t, ctx, out, func(o *Options) {
		o.Once = false
		if os.Getenv("KERNELGATE_SCRIPTED") == "" { // faster, for checking the layout
			if err := os.WriteFile(filepath.Join(os.Getenv("TMPDIR"), "measure-all"), nil, 0o644); err != nil {
				t.Fatal(err)
			}
		}
	})
	if err != nil && !errors.Is(err, context.Canceled) || !right {
		t.Fatalf("it ended with %v, %v:\n%s", right, err, out)
	}
}

func takeAll(t *testing.T, hub, bot string) {
	tab := browser.Open(t).Tab(browser.Look{})
	take := func(name, url, element string, look browser.Look) {
		t.Helper()
		look.Scale = 1.5
		tab.Look(look)
		tab.Go(url)
		file := filepath.Join(*screenshots, name+".png")
		picture, err := smaller(tab.Picture(element))
		if err := errors.Join(err, os.WriteFile(file, picture, 0o644)); err != nil {
			t.Error(err)
		}
		for _, c := range tab.Complaints() {
			t.Error(c)
		}
	}
	const deferred = 4 // the pull request that is too slow and measured twice
	pull := fmt.Sprintf("%s/%s/kernels/pull/%d", hub, owner, deferred)
	take("comment", pull, "section.box", browser.Look{Width: 900})
	tab.Go(bot + "/")
	paths := browser.Eval[map[string]string](tab, `Object.fromEntries([...document.querySelectorAll("a[href]")].map(a => [a.innerText.replace(/\s+/g, " ").trim(), a.getAttribute("href")]))`)
	take("home", bot+"/", "", browser.Look{Width: 1000, Height: 645})
	take("kernel", bot+paths["sdpa_cpu"], "", browser.Look{Width: 1000, Height: 1240})
	run := browser.Eval[string](tab, `[...document.querySelectorAll("a[href^='/runs/']")].find(a => /too-slow/.test(a.textContent)).getAttribute("href")`)
	take("run", bot+run, "", browser.Look{Width: 1000, Height: 1318})
	take("compare", fmt.Sprintf("%s/compare?kernel=sdpa_cpu&a=main&b=%%23%d", bot, deferred), "", browser.Look{Width: 1000, Height: 760})
}

// smaller reduces a PNG to its 256 most frequent colours. A page has few.
func smaller(data []byte) ([]byte, error) {
	full, err := png.Decode(bytes.NewReader(data))
	if err != nil {
		return nil, err
	}
	count, box := map[color.RGBA]int{}, full.Bounds()
	at := func(x, y int) color.RGBA { return color.RGBAModel.Convert(full.At(x, y)).(color.RGBA) }
	for y := box.Min.Y; y < box.Max.Y; y++ {
		for x := box.Min.X; x < box.Max.X; x++ {
			count[at(x, y)]++
		}
	}
	often := slices.SortedFunc(maps.Keys(count), func(a, b color.RGBA) int {
		return cmp.Or(count[b]-count[a], int(a.R)-int(b.R), int(a.G)-int(b.G), int(a.B)-int(b.B))
	})
	var few color.Palette
	for _, c := range often[:min(len(often), 256)] {
		few = append(few, c)
	}
	nearest := map[color.RGBA]uint8{}
	for c := range count {
		nearest[c] = uint8(few.Index(c))
	}
	picture := image.NewPaletted(box, few)
	for y := box.Min.Y; y < box.Max.Y; y++ {
		for x := box.Min.X; x < box.Max.X; x++ {
			picture.SetColorIndex(x, y, nearest[at(x, y)])
		}
	}
	var out bytes.Buffer
	err = (&png.Encoder{CompressionLevel: png.BestCompression}).Encode(&out, picture)
	return out.Bytes(), err
}
