// Man writes a manual page for each command, and the completions of each shell, into a folder: man FOLDER. The packages have them.
package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/kernelgate/kernelgate/bot/cli"
)

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "man: write the folder that the pages go to")
		os.Exit(2)
	}
	if err := write(os.Args[1]); err != nil {
		fmt.Fprintln(os.Stderr, "man:", err)
		os.Exit(1)
	}
}

func write(folder string) error {
	root := cli.Command(io.Discard, io.Discard)
	root.InitDefaultCompletionCmd()
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return err
	}
	return errors.Join(
		pages(root, folder),
		root.GenBashCompletionFileV2(filepath.Join(folder, "kernelgate.bash"), true),
		root.GenZshCompletionFile(filepath.Join(folder, "_kernelgate")),
		root.GenFishCompletionFile(filepath.Join(folder, "kernelgate.fish"), true),
	)
}

func pages(c *cobra.Command, folder string) error {
	name := strings.ReplaceAll(c.CommandPath(), " ", "-")
	if err := os.WriteFile(filepath.Join(folder, name+".1"), []byte(page(c)), 0o644); err != nil {
		return err
	}
	for _, below := range c.Commands() {
		if below.Hidden || below.Name() == "completion" || below.Name() == "help" {
			continue
		}
		if err := pages(below, folder); err != nil {
			return err
		}
	}
	return nil
}

// page is a command's manual page in roff.
func page(c *cobra.Command) string {
	var b strings.Builder
	name := strings.ReplaceAll(c.CommandPath(), " ", "-")
	fmt.Fprintf(&b, ".TH %s 1 \"\" kernelgate \"User Commands\"\n.SH NAME\n%s \\- %s\n.SH SYNOPSIS\n.B %s\n", strings.ToUpper(escaped(name)), escaped(name), escaped(c.Short), escaped(c.UseLine()))
	about := c.Long
	if about == "" {
		about = c.Short
	}
	fmt.Fprintf(&b, ".SH DESCRIPTION\n.nf\n%s\n.fi\n", escaped(about))
	if c.HasAvailableLocalFlags() {
		b.WriteString(".SH OPTIONS\n")
		c.LocalFlags().VisitAll(func(f *pflag.Flag) {
			if f.Hidden {
				return
			}
			value, usage := pflag.UnquoteUsage(f)
			fmt.Fprintf(&b, ".TP\n.B \\-\\-%s %s\n%s\n", escaped(f.Name), escaped(value), escaped(usage))
		})
	}
	if c.Example != "" {
		fmt.Fprintf(&b, ".SH EXAMPLES\n.nf\n%s\n.fi\n", escaped(c.Example))
	}
	var also []string
	for _, below := range c.Commands() {
		if !below.Hidden && below.Name() != "completion" && below.Name() != "help" {
			also = append(also, ".BR "+escaped(name+"-"+below.Name())+" (1)")
		}
	}
	if c.HasParent() {
		also = append(also, ".BR "+escaped(strings.ReplaceAll(c.Parent().CommandPath(), " ", "-"))+" (1)")
	}
	fmt.Fprintf(&b, ".SH SEE ALSO\n%s\n", strings.Join(also, ",\n"))
	return b.String()
}

// escaped is a text in which roff finds no request: no backslash, and no line that begins with a dot or a quote.
func escaped(text string) string {
	text = strings.NewReplacer(`\`, `\e`, "-", `\-`).Replace(strings.TrimRight(text, "\n"))
	lines := strings.Split(text, "\n")
	for i, line := range lines {
		if strings.HasPrefix(line, ".") || strings.HasPrefix(line, "'") {
			lines[i] = `\&` + line
		}
	}
	return strings.Join(lines, "\n")
}
