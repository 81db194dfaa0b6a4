package inspect

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"
)

// TestMain lets the test binary play ncu if the environment says which part.
func TestMain(m *testing.M) {
	if part := os.Getenv("FAKE_NCU"); part != "" {
		os.Exit(fakeNCU(part, os.Args[1:]))
	}
	os.Exit(m.Run())
}

// fakeNCU behaves like ncu for the options that the package uses: messages go to the log, counters
// to the report, and a table is printed only from a report.
func fakeNCU(part string, args []string) int {
	noteArgs(args)
	if report := option(args, "--import"); report != "" {
		return fakeImport(part, report, args)
	}
	log, report := option(args, "--log-file"), option(args, "--export")
	lied := "==ERROR== ERR_NVGPUCTRPERM, says a kernel\n" + printed("%", "99")
	switch part {
	case "no_permission", "busy", "no_profiler", "unknown_metrics":
		put(log, fixture(part+"_handmade.txt"))
		return 1
	case "no_kernels":
		put(log, fixture("no_kernels_handmade.txt"))
		return 0
	case "no_report":
		put(log, "==PROF== Connected to process 1\n")
		return 0
	case "bad_option":
		fmt.Println("==ERROR== unrecognised option '--clock-control'. Use --help for further details.")
		return 1
	case "liar_fails":
		fmt.Print(lied)
		put(log, "==ERROR== The moon is in the wrong house\n")
		return 9
	case "hang":
		return hang()
	}
	fmt.Print(lied)
	put(log, "==PROF== Connected to process 1\n==PROF== Report: "+report+"\n")
	put(report, "counters")
	return 0
}

func fakeImport(part, report string, args []string) int {
	if text, err := os.ReadFile(report); err != nil || string(text) != "counters" {
		fmt.Println("==ERROR== Failed to open the report")
		return 1
	}
	if option(args, "--page") == "source" {
		fmt.Print(fixture("../samples/" + part + ".csv"))
		return 0
	}
	switch part {
	case "raw", "liar", "two", "one", "none":
		fmt.Print(fixture("raw_handmade.csv"))
	case "garbage":
		fmt.Print("\x00\x01 no table\n")
	case "broken_table":
		fmt.Print(printed("%", "65,77"))
	case "empty_table":
		fmt.Println(fixedHeader)
	case "import_fails":
		fmt.Println("==ERROR== The report is of a newer version")
		return 1
	}
	return 0
}

// hang waits for ever, and so does its child, which plays the profiled program. Both hold the pipe
// that the test reads.
func hang() int {
	pipe, err := os.OpenFile(os.Getenv("FAKE_NCU_PIPE"), os.O_WRONLY, 0)
	if err != nil {
		fmt.Println(err)
		return 1
	}
	fmt.Fprint(pipe, "up ")
	if os.Getenv("FAKE_NCU_CHILD") == "" {
		child := exec.Command(os.Args[0])
		child.Env = append(os.Environ(), "FAKE_NCU_CHILD=1")
		child.Stdout = os.Stdout
		if err := child.Run(); err != nil {
			return 1
		}
	}
	silent, writer, err := os.Pipe() // the runtime would report an empty select as a deadlock
	if err != nil {
		return 1
	}
	_, err = io.ReadAll(silent)
	fmt.Println(writer.Close(), err)
	return 1
}

func option(args []string, name string) string {
	if i := slices.Index(args, name); i >= 0 && i+1 < len(args) {
		return args[i+1]
	}
	return ""
}

// noteArgs appends the call to the file that the test reads.
func noteArgs(args []string) {
	file := os.Getenv("FAKE_NCU_ARGS")
	if file == "" {
		return
	}
	f, err := os.OpenFile(file, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
	if err != nil {
		panic(err)
	}
	defer f.Close()
	if err := json.NewEncoder(f).Encode(map[string]any{"args": args, "locale": os.Getenv("LC_ALL")}); err != nil {
		panic(err)
	}
}

func fixture(name string) string {
	text, err := os.ReadFile(filepath.Join(os.Getenv("FAKE_NCU_TESTDATA"), name))
	if err != nil {
		panic(err)
	}
	return string(text)
}

func put(file, text string) {
	if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
		panic(err)
	}
}
