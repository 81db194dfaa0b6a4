package sandbox

import (
	"context"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// TestSecurityListsTheLimits compares the table in SECURITY.md with the limits in the code.
func TestSecurityListsTheLimits(t *testing.T) {
	page, err := os.ReadFile("../../../SECURITY.md")
	if err != nil {
		t.Fatal(err)
	}
	var table strings.Builder
	table.WriteString("| program | time | memory | files | processes, threads | output | why |\n| --- | --: | --: | --: | --: | --: | --- |\n")
	for k := range Kind(kinds) {
		d := k.describe()
		if filled := d.limits.withDefaults(); filled.Disk != d.limits.Disk || filled.Memory != d.limits.Memory || filled.Wall != d.limits.Wall ||
			filled.Processes != d.limits.Processes || filled.Output != d.limits.Output {
			t.Errorf("%s leaves a limit to the default, which the table does not show: %+v", d.name, d.limits)
		}
		memory := sizeText(d.limits.Memory)
		if d.limits.Overcommit {
			memory += " resident"
		}
		fmt.Fprintf(&table, "| %s | %s | %s | %s | %d | %s | %s |\n", d.name, wallText(d.limits.Wall), memory, sizeText(d.limits.Disk), d.limits.Processes, sizeText(d.limits.Output), d.why)
	}
	if !strings.Contains(string(page), "\n\n"+table.String()+"\n") {
		t.Errorf("SECURITY.md does not have this table:\n\n%s", &table)
	}
}

func wallText(d time.Duration) string {
	switch {
	case d >= time.Hour:
		return fmt.Sprintf("%v h", d.Hours())
	case d >= 2*time.Minute || d == time.Minute:
		return fmt.Sprintf("%v min", d.Minutes())
	}
	return fmt.Sprintf("%v s", d.Seconds())
}

// TestLimitsAreInOnePlace checks that nobody who starts a program writes its own limits.
func TestLimitsAreInOnePlace(t *testing.T) {
	callers := 0
	err := filepath.WalkDir("../../..", func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && strings.HasPrefix(d.Name(), ".") && len(d.Name()) > 2:
			return fs.SkipDir
		case d.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go"):
			return nil
		}
		source, err := os.ReadFile(path)
		if strings.Contains(string(source), "sandbox.Limits{") {
			t.Errorf("%s has limits of its own (give them a Kind in runners/host/sandbox/limits.go)", path)
		}
		callers += strings.Count(string(source), ".Limits()")
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	if callers < kinds {
		t.Errorf("%d callers use the limits of %d kinds", callers, kinds)
	}
}

// A build has the time that its policy gives, however much the compiler's own limit is.
func TestLimitsUntil(t *testing.T) {
	limits := DeviceCompiler.Limits()
	if got := limits.Until(t.Context()).Wall; got != limits.Wall {
		t.Errorf("without a deadline: %v, want %v", got, limits.Wall)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
	defer cancel()
	if got := limits.Until(ctx).Wall; got <= time.Hour-time.Minute || got > time.Hour+time.Minute {
		t.Errorf("with an hour left: %v", got)
	}
	if got := limits.Until(ctx).Within(time.Second).Wall; got != time.Second {
		t.Errorf("with a time of its own: %v", got)
	}
	over, cancel := context.WithDeadline(t.Context(), time.Unix(0, 0))
	defer cancel()
	if got := limits.Until(over).Wall; got <= 0 {
		t.Errorf("after the deadline: %v", got)
	}
}
