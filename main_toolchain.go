package main

import (
	"context"
	"os"
	"path/filepath"
	"strings"

	"github.com/kernelgate/kernelgate/policies"
	"github.com/kernelgate/kernelgate/policies/strict"
	"github.com/kernelgate/kernelgate/runners/check"
	"github.com/kernelgate/kernelgate/runners/toolchain"
)

// compareCompilers reads --toolchain: which compiler builds which side.
func compareCompilers(ctx context.Context, opt *check.Options, given map[string]string) error {
	if len(given) == 0 {
		return nil
	}
	if opt.Variant != "" || opt.Base != "" {
		return strict.Mistakef("--toolchain compares two compilers on the same sources: it goes with neither --base nor --variant")
	}
	for side, text := range given {
		into := map[string]*policies.Toolchains{"old": &opt.Before, "new": &opt.After}[side]
		if into == nil {
			return strict.Mistakef("--toolchain: %q is no side (write new=%s, and old=… if need be)", side, text)
		}
		if filepath.IsAbs(text) {
			opt.Toolchains = append(opt.Toolchains, text)
		}
		kind, pin, err := toolchain.Installed{Paths: opt.Toolchains, Getenv: os.Getenv}.Named(ctx, text)
		if err != nil {
			return strict.Mistakef("--toolchain %s: %w", side, err)
		}
		*into = into.With(kind, &pin)
	}
	if opt.After == (policies.Toolchains{}) {
		return strict.Mistakef("--toolchain names no new compiler (add e.g. --toolchain new=%s)", strings.TrimSpace(given["old"]))
	}
	return nil
}
