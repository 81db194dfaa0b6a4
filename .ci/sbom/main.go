// Command sbom writes the bill of materials of a Go program: the modules that the linker recorded in
// the program, as CycloneDX 1.6. It reads only the program, so two runs give the same bytes.
//
//	sbom PROGRAM VERSION kernelgate.cdx.json
package main

import (
	"bytes"
	"crypto/sha256"
	"debug/buildinfo"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"runtime/debug"
	"strings"
)

func main() {
	if len(os.Args) != 4 {
		fmt.Fprintln(os.Stderr, "usage: sbom PROGRAM VERSION DOCUMENT")
		os.Exit(2)
	}
	if err := run(os.Args[1], os.Args[2], os.Args[3]); err != nil {
		fmt.Fprintln(os.Stderr, "sbom:", err)
		os.Exit(1)
	}
}

func run(program, version, document string) error {
	var text bytes.Buffer
	if err := write(&text, program, version); err != nil {
		return err
	}
	return os.WriteFile(document, text.Bytes(), 0o644)
}

// write writes the bill of materials of a program, whose own version Go does not know.
func write(w io.Writer, program, version string) error {
	info, err := buildinfo.ReadFile(program)
	if err != nil {
		return err
	}
	content, err := os.ReadFile(program)
	if err != nil {
		return err
	}
	sum := sha256.Sum256(content)
	main := component{Type: "application", Name: info.Main.Path, Version: version, PURL: purl(info.Main.Path, version),
		Hashes: []hash{{"SHA-256", hex.EncodeToString(sum[:])}}}
	main.BOMRef = main.PURL
	for _, s := range info.Settings {
		if s.Key == "GOOS" || s.Key == "GOARCH" {
			main.Properties = append(main.Properties, property{"go:" + s.Key, s.Value})
		}
	}
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	e.SetEscapeHTML(false)
	return e.Encode(document{Format: "CycloneDX", Spec: "1.6", Version: 1, Metadata: metadata{main}, Components: components(info)})
}

// components are the modules that were linked, and Go's standard library.
func components(info *debug.BuildInfo) []component {
	version := strings.TrimPrefix(info.GoVersion, "go")
	all := []component{{Type: "library", BOMRef: purl("std", version), Name: "std", Version: version, PURL: purl("std", version)}}
	for _, module := range info.Deps {
		if module.Replace != nil {
			module = module.Replace
		}
		c := component{Type: "library", BOMRef: purl(module.Path, module.Version), Name: module.Path, Version: module.Version, PURL: purl(module.Path, module.Version)}
		if module.Sum != "" { // the hash of go.sum is not one of CycloneDX's
			c.Properties = []property{{"go:sum", module.Sum}}
		}
		all = append(all, c)
	}
	return all
}

func purl(path, version string) string { return "pkg:golang/" + path + "@" + version }

// These are the objects of CycloneDX that are used.
type (
	document struct {
		Format     string      `json:"bomFormat"`
		Spec       string      `json:"specVersion"`
		Version    int         `json:"version"`
		Metadata   metadata    `json:"metadata"`
		Components []component `json:"components"`
	}
	metadata struct {
		Component component `json:"component"`
	}
	component struct {
		Type       string     `json:"type"`
		BOMRef     string     `json:"bom-ref"`
		Name       string     `json:"name"`
		Version    string     `json:"version"`
		Hashes     []hash     `json:"hashes,omitempty"`
		PURL       string     `json:"purl"`
		Properties []property `json:"properties,omitempty"`
	}
	hash struct {
		Algorithm string `json:"alg"`
		Content   string `json:"content"`
	}
	property struct {
		Name  string `json:"name"`
		Value string `json:"value"`
	}
)
