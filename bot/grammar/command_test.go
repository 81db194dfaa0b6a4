package grammar_test

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"github.com/kernelgate/kernelgate/bot/grammar"
	"github.com/kernelgate/kernelgate/policies/policy"
)

var update = flag.Bool("update", false, "rewrite the golden files")

type Rebench = grammar.Rebench

type comment struct {
	name, body string
	want       grammar.Command
}

// commands are comments with their expected commands. A nil want means that the comment contains no
// command.
var commands = []comment{
	{"bare", "/rebench", Rebench{}},
	{"every argument", "/rebench sdpa_fp8 gemm shapes=mission,long seeds=0,1 rounds=20 vs=v1.2.0 profile",
		Rebench{[]string{"sdpa_fp8", "gemm"}, "", []string{"mission", "long"}, []int64{0, 1}, 20, "v1.2.0", true}},
	{"on one device", "/rebench on h200", Rebench{Device: "h200"}},
	{"kernels on one device", "/rebench sdpa ON h200 gemm rounds=3", Rebench{Kernels: []string{"sdpa", "gemm"}, Device: "h200", Rounds: 3}},
	{"tune on a device", "/tune sdpa on l4 budget=90s", grammar.Tune{Kernel: "sdpa", Device: "l4", Minutes: 1, Seconds: 30}},
	{"bisect on a device", "/bisect on l4 v1..v2", grammar.Bisect{Device: "l4", Good: "v1", Bad: "v2"}},
	{"arguments in any order", "/rebench profile vs=self a rounds=1", Rebench{Kernels: []string{"a"}, Rounds: 1, Versus: grammar.Self, Profile: true}},
	{"capitals", "/ReBench Sdpa ROUNDS=1000 Profile", Rebench{Kernels: []string{"Sdpa"}, Rounds: 1000, Profile: true}},
	{"largest seed", "/rebench seeds=9223372036854775807,007", Rebench{Seeds: []int64{9223372036854775807, 7}}},
	{"branch with slashes", "/rebench vs=origin/feature/x-1", Rebench{Versus: "origin/feature/x-1"}},
	{"branch beyond ASCII", "/rebench vs=größer", Rebench{Versus: "größer"}},
	{"ref with an equals sign", "/rebench vs=a=b", Rebench{Versus: "a=b"}},
	{"cancel", "/cancel", grammar.Cancel{}},
	{"tune", "/tune", grammar.Tune{}},
	{"tune with every argument", "/tune kernels/sdpa/ shapes=a,b variants=x,y budget=20m candidates=50 Proposer=genetic",
		grammar.Tune{Kernel: "kernels/sdpa", Shapes: []string{"a", "b"}, Variants: []string{"x", "y"}, Minutes: 20, Candidates: 50, Proposer: "genetic"}},
	{"tune for an hour", "/tune budget=1h", grammar.Tune{Minutes: 60}},
	{"tune for seconds", "/tune budget=90s", grammar.Tune{Minutes: 1, Seconds: 30}},
	{"bisect", "/bisect", grammar.Bisect{}},
	{"bisect with every argument", "/bisect sdpa v1.2..origin/main shapes=a rounds=20", grammar.Bisect{Kernel: "sdpa", Good: "v1.2", Bad: "origin/main", Shapes: []string{"a"}, Rounds: 20}},
	{"bisect of a range alone", "/bisect 1a2b3c4..main", grammar.Bisect{Good: "1a2b3c4", Bad: "main"}},
	{"explain", "/explain  ", grammar.Explain{}},
	{"why", "/why", grammar.Why{}},
	{"why of a shape", "/why mission", grammar.Why{Words: []string{"mission"}}},
	{"why with every argument", "/why kernels/sdpa/ long shapes=a,b", grammar.Why{Words: []string{"kernels/sdpa", "long"}, Shapes: []string{"a", "b"}}},
	{"help", "/HELP", grammar.ShowHelp{}},
	{"override", "/override accuracy first,  see #12 — ok?", grammar.Override{Reason: "accuracy first,  see #12 — ok?"}},
	{"override with code", "/override `<!--` is literal here", grammar.Override{Reason: "`<!--` is literal here"}},
	{"override of the longest reason", "/override " + strings.Repeat("ü", 500), grammar.Override{Reason: strings.Repeat("ü", 500)}},
	{"approval", "/ok-to-test 1A2b3c4", grammar.OKToTest{SHA: "1a2b3c4"}},
	{"approval of rules", "/approve-policy " + strings.Repeat("0A", 20), grammar.ApprovePolicy{SHA: strings.Repeat("0a", 20)}},
	{"approval of SHA-256", "/ok-to-test " + strings.Repeat("0a", 32), grammar.OKToTest{SHA: strings.Repeat("0a", 32)}},
	{"kernels by folder", "/rebench kernels/other/ scale", Rebench{Kernels: []string{"kernels/other", "scale"}}},
	{"approval in full", "/ok-to-test " + strings.Repeat("0a", 20), grammar.OKToTest{SHA: strings.Repeat("0a", 20)}},

	{"after text", "Thanks!\n/cancel", grammar.Cancel{}},
	{"after a blank line", "Thanks!\n\n/cancel\n\nbye", grammar.Cancel{}},
	{"carriage returns", "Thanks!\r\n/rebench rounds=3\r\nbye", Rebench{Rounds: 3}},
	{"three blanks", "   /cancel", grammar.Cancel{}},
	{"hard and wide blanks", "\u00a0/rebench\u00a0a\u3000rounds=2\u200b", Rebench{Kernels: []string{"a"}, Rounds: 2}},
	{"byte order mark", "\ufeff/cancel", grammar.Cancel{}},
	{"tab between words", "/rebench\tsdpa", grammar.Rebench{Kernels: []string{"sdpa"}}},
	{"only the first counts", "/cancel\n/rebench", grammar.Cancel{}},
	{"another bot's first", "/lgtm\n/rebench", nil},
	{"a further line of a list item", "- done\n  /cancel", grammar.Cancel{}},
	{"hidden argument", "/rebench a <!-- b --> c", Rebench{Kernels: []string{"a", "c"}}},
	{"hidden argument over lines", "/rebench a <!-- b\nc -->", Rebench{Kernels: []string{"a"}}},

	{"nothing", "", nil},
	{"no slash", "please rebench", nil},
	{"in a sentence", "please /rebench", nil},
	{"a path", "/etc/passwd is unreadable", nil},
	{"a path of ours", "/help/me", nil},
	{"a comment of C", "// rebench", nil},
	{"a lone slash", "/ rebench", nil},
	{"another bot's", "/lgtm", nil},
	{"two typos", "/rebnh", nil},
	{"list item", "- /rebench", nil},

	{"quoted", "> /rebench\n\nno, thanks", nil},
	{"quoted twice", ">> /rebench", nil},
	{"quoted after blanks", "  > /rebench", nil},
	{"quoted, then said", "> /cancel\n\n/rebench", Rebench{}},
	{"right below a quote, which goes on", "> why?\n/explain", nil},
	{"below a quote and a blank line", "> why?\n\n/explain", grammar.Explain{}},
	{"quoted fence left open", "> ```\n> x\n\n/cancel", grammar.Cancel{}},
	{"quote of HTML", "<blockquote>\n<blockquote>x</blockquote>\n/rebench\n</blockquote>", nil},
	{"fenced", "```\n/rebench\n```", nil},
	{"fenced with a language", "```sh\n/rebench\n```\n", nil},
	{"fenced with tildes", "~~~\n/rebench\n```\n/rebench\n~~~", nil},
	{"fenced at length", "````\n```\n/rebench\n```\n````", nil},
	{"fence never closed", "```\ncode\n\n/rebench", nil},
	{"fence after blanks", "   ```\n/rebench\n   ```", nil},
	{"after a fence", "```\n/rebench\n```\n/cancel", grammar.Cancel{}},
	{"no fence: info with a backtick", "``` a`b\n/cancel", grammar.Cancel{}},
	{"fence in a list item", "- ```\n  /rebench\n  ```", nil},
	{"fence below a list item", "1. see\n   ```\n   /rebench\n   ```", nil},
	{"fence that its list item ends", "- a\n  ```\n  code\n\ntext\n```\n/rebench\n```", nil},
	{"after a list item's fence", "- ```\n  x\n\n/cancel", grammar.Cancel{}},
	{"indented", "text\n\n    /rebench", nil},
	{"indented by a tab", "\t/rebench", nil},
	{"indented by blank and tab", "  \t/rebench", nil},
	{"inline code", "`/rebench`", nil},
	{"inline code over lines", "run `x\n/rebench` again", nil},
	{"inline code that ends in a deep line", "run `x\n/rebench\n      y`", nil},
	{"inline code over a line with a number", "run `x\n2026. We\n/rebench` again", nil},
	{"backtick that opens nothing", "it`s slow\n/rebench", Rebench{}},
	{"backtick in a heading", "# `\n/cancel\n`", grammar.Cancel{}},
	{"backtick escaped", "a \\` b\n/cancel\n`", grammar.Cancel{}},
	{"pre", "<PRE class=x>\n/rebench\n</pre>", nil},
	{"code element", "<code>\n/rebench\n</code>\n\n/cancel", grammar.Cancel{}},
	{"code element, which goes on to a blank line", "<code>\n/rebench\n</code>\n/cancel", nil},
	{"HTML comment", "<!--\n/rebench\n-->", nil},
	{"HTML comment with a blank line", "<!-- template\n\n/rebench\n\n--> \n\n/cancel", grammar.Cancel{}},
	{"HTML comment never closed", "<!--\n/rebench", nil},
	{"HTML comment in a paragraph", "hello <!-- see\n/rebench -->", nil},
	{"after an HTML comment's end", "<!--\n--> /rebench\n", nil},

	{"mail: answer above", "/rebench\r\n\r\nOn Tue, 3 Mar 2026 at 10:00, Ann <a@example.com> wrote:\r\n> /cancel\r\n", Rebench{}},
	{"mail: answer below", "On Tue, Ann <a@example.com> wrote:\n> /cancel\n\n/rebench", Rebench{}},
	{"mail: quoted alone", "Thanks.\n\nOn Tue, Ann wrote:\n\n> /rebench", nil},
	{"mail: not marked", "Thanks.\n\nOn Tue, 3 Mar 2026 at 10:00, Ann <a@example.com> wrote:\n\n/rebench", nil},
	{"mail: not marked, wrapped", "Thanks.\n\nOn Tue, 3 Mar 2026 at 10:00, Ann <a@example.com>\nwrote:\n\n/rebench", nil},
	{"mail: original message", "Thanks.\n-----Original Message-----\nFrom: Ann\n\n/rebench", nil},
}

func TestParse(t *testing.T) {
	for _, test := range slices.Concat(commands, hidden) {
		t.Run(test.name, func(t *testing.T) {
			got, ok := grammar.Parse(test.body)
			if ok != (test.want != nil) || got.Mistake != nil {
				t.Fatalf("got %v, %v, %v", got, ok, got.Mistake)
			}
			if diff := cmp.Diff(test.want, got.Command); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
			if ok {
				checkRoundTrip(t, got)
			}
		})
	}
}

// checkRoundTrip formats a request as a comment and as JSON, and parses both again.
func checkRoundTrip(t *testing.T, r grammar.Request) {
	t.Helper()
	if c := r.Command; c != nil {
		if again, ok := grammar.Parse(c.String()); !ok || !cmp.Equal(r, again) {
			t.Fatalf("%#v is written %q, which reads %#v, %v", c, c, again, ok)
		}
	}
	stored, err := json.Marshal(r)
	if err != nil {
		t.Fatal(err)
	}
	var again grammar.Request
	if err := json.Unmarshal(stored, &again); err != nil || !cmp.Equal(r, again) {
		t.Fatalf("%#v is stored as %s, which reads %#v, %v", r, stored, again, err)
	}
}

func TestMistakes(t *testing.T) {
	var fifty []string
	for i := range 51 {
		fifty = append(fifty, fmt.Sprint(" k", i))
	}
	tests := []struct{ name, body, command, want string }{
		{"letter missing", "/rebnch a", "rebench", "`/rebnch` is not a command (write `/rebench`, or `/help` for a list)"},
		{"letter added", "/cancell", "cancel", "`/cancell` is not a command (write `/cancel`, or `/help` for a list)"},
		{"letter wrong", "/Halp", "help", "`/Halp` is not a command (write `/help`, or `/help` for a list)"},
		{"letters swapped", "/ok-to-tset 1a2b3c4", "ok-to-test", "`/ok-to-tset` is not a command (write `/ok-to-test`, or `/help` for a list)"},
		{"full stop", "/explain.", "explain", "`/explain.` is not a command (write `/explain`, or `/help` for a list)"},
		{"cancel with an argument", "/cancel @everyone", "cancel", "`/cancel`: `@everyone` is too much: the command takes no argument (write only `/cancel` on its line)"},
		{"unknown option", "/rebench speed=9", "rebench", "`/rebench`: `speed=` is not an argument (write `shapes=`, `seeds=`, `rounds=`, `vs=`, or `profile`)"},
		{"no device", "/rebench sdpa on", "rebench", "`/rebench`: on: the device is missing (write its label in the policy, such as `on h200`)"},
		{"two devices", "/rebench on l4 on h200", "rebench", "`/rebench`: on: `h200` is a second device (write one, or leave `on` out for all)"},
		{"no label", "/tune on a/b", "tune", "`/tune`: on: `a/b` is not a device (write its label in the policy, such as `on h200`)"},
		{"misspelt option", "/rebench round=9", "rebench", "`/rebench`: `round=` is not an argument (write `rounds=`)"},
		{"option twice", "/rebench rounds=1 rounds=2", "rebench", "`/rebench`: `rounds` is given twice (delete one)"},
		{"no rounds", "/rebench rounds=0", "rebench", "`/rebench`: rounds: `0` is not a number of rounds (write 1 to 1000, such as `rounds=20`)"},
		{"too many rounds", "/rebench rounds=1001", "rebench", "`/rebench`: rounds: `1001` is not a number of rounds (write 1 to 1000, such as `rounds=20`)"},
		{"rounds beyond 64 bits", "/rebench rounds=99999999999999999999", "rebench", "`/rebench`: rounds: `99999999999999999999` is not a number of rounds (write 1 to 1000, such as `rounds=20`)"},
		{"signed rounds", "/rebench rounds=+1", "rebench", "`/rebench`: rounds: `+1` is not a number of rounds (write 1 to 1000, such as `rounds=20`)"},
		{"negative seed", "/rebench seeds=0,-1", "rebench", "`/rebench`: seeds: `-1` is not a seed (write whole numbers from 0 with commas and no blanks, such as `seeds=0,1`)"},
		{"seed twice", "/rebench seeds=1,01", "rebench", "`/rebench`: seeds: `1` is named twice (delete one)"},
		{"too many seeds", "/rebench seeds=" + strings.Repeat("1,", 100) + "1", "rebench", "`/rebench`: seeds: 101 of them (write at most 100)"},
		{"blank after a comma", "/rebench shapes=a, b", "rebench", "`/rebench`: shapes: a name is empty (write them with commas and no blanks, such as `shapes=a,b`)"},
		{"strange shape", "/rebench shapes=../x", "rebench", "`/rebench`: shapes: `../x` is not a name (write letters, digits, `.`, `_` and `-`)"},
		{"strange kernel", "/rebench `sdpa`", "rebench", "`/rebench`: kernel: `'sdpa'` is not a kernel (write its name, or its folder such as `kernels/sdpa`)"},
		{"kernel twice", "/rebench a a", "rebench", "`/rebench`: kernel: `a` is named twice (delete one)"},
		{"profile with a value", "/rebench profile=yes", "rebench", "`/rebench`: profile: takes no value, and `yes` is one (write only `profile`)"},
		{"ref like an option", "/rebench vs=--upload-pack=x", "rebench", "`/rebench`: vs: `--upload-pack=x` is not a ref (write a branch, a tag, a commit or `self`, such as `vs=main`)"},
		{"range", "/rebench vs=a..b", "rebench", "`/rebench`: vs: `a..b` is not a ref (write a branch, a tag, a commit or `self`, such as `vs=main`)"},
		{"ref with a control character", "/rebench vs=a\x01b", "rebench", "`/rebench`: vs: `a\ufffdb` is not a ref (write a branch, a tag, a commit or `self`, such as `vs=main`)"},
		{"expression", "/rebench vs=main^{tree}", "rebench", "`/rebench`: vs: `main^{tree}` is not a ref (write a branch, a tag, a commit or `self`, such as `vs=main`)"},
		{"long ref", "/rebench vs=" + strings.Repeat("a", 201), "rebench", "`/rebench`: vs: `" + strings.Repeat("a", 60) + "…` is not a ref (write a branch, a tag, a commit or `self`, such as `vs=main`)"},
		{"no ref", "/rebench vs=", "rebench", "`/rebench`: vs: an empty value is not a ref (write a branch, a tag, a commit or `self`, such as `vs=main`)"},
		{"two kernels to tune", "/tune a b", "tune", "`/tune`: kernel: `b` is a second kernel (a search takes one kernel)"},
		{"a program as proposer", "/tune proposer=./mine.py", "tune", "`/tune`: proposer: `./mine.py` is not one of grid, random, genetic, local (only `kernelgate tune` takes a program)"},
		{"too little budget", "/tune budget=20s", "tune", "`/tune`: budget: `20s` is not a time of measuring (write 30s to 60m, such as 90s)"},
		{"parts of a second of budget", "/tune budget=90500ms", "tune", "`/tune`: budget: `90500ms` is not a time of measuring (write 30s to 60m, such as 90s)"},
		{"too much budget", "/tune budget=61m", "tune", "`/tune`: budget: `61m` is not a time of measuring (write 30s to 60m, such as 90s)"},
		{"too many candidates", "/tune candidates=501", "tune", "`/tune`: candidates: `501` is not a number of candidates (write 1 to 500)"},
		{"strange variant", "/tune variants=a,", "tune", "`/tune`: variants: an empty value is not a name (write letters, digits, `.`, `_` and `-`, with commas and no blanks)"},
		{"unknown argument of tune", "/tune rounds=3", "tune", "`/tune`: `rounds=` is not an argument (write `shapes=`, `variants=`, `budget=`, `candidates=`, `proposer=`)"},
		{"half a range", "/bisect v1..", "bisect", "`/bisect`: `v1..` is not a range of commits (write GOOD..BAD, such as `v1.2..main`)"},
		{"two ranges", "/bisect a..b c..d", "bisect", "`/bisect`: two ranges of commits are given (write one: GOOD..BAD)"},
		{"three dots", "/bisect a...b", "bisect", "`/bisect`: `a...b` is not a range of commits: `.b` is not a ref (write branches, tags or commits, such as `v1.2..main`)"},
		{"a range with an option", "/bisect a..--all", "bisect", "`/bisect`: `a..--all` is not a range of commits: `--all` is not a ref (write branches, tags or commits, such as `v1.2..main`)"},
		{"too few rounds of a commit", "/bisect rounds=3", "bisect", "`/bisect`: rounds: `3` is not a number of rounds for one commit (write 4 to 200)"},
		{"rounds of a commit twice", "/bisect rounds=5 rounds=6", "bisect", "`/bisect`: `rounds` is given twice (delete one)"},
		{"no reason", "/override", "override", "`/override`: the reason is missing (write it on the same line, such as `/override accuracy matters more here, see #12`)"},
		{"reason on the next line", "/override\nbecause", "override", "`/override`: the reason is missing (write it on the same line, such as `/override accuracy matters more here, see #12`)"},
		{"a kernel too many", "/rebench" + strings.Join(fifty, ""), "rebench", "`/rebench`: kernel: too many (write at most 50)"},
		{"invisible reason", "/override <!-- because --> …", "override", "`/override`: the reason is missing (write it on the same line, such as `/override accuracy matters more here, see #12`)"},
		{"long reason", "/override " + strings.Repeat("ü", 501), "override", "`/override`: the reason has 501 characters (write at most 500)"},
		{"no sha", "/ok-to-test", "ok-to-test", "`/ok-to-test`: the sha is missing (write the full id of the head commit that you have read: its 40 hex digits)"},
		{"no sha for rules", "/approve-policy", "approve-policy", "`/approve-policy`: the sha is missing (write the full id of the head commit that you have read: its 40 hex digits)"},
		{"short sha", "/ok-to-test 1a2", "ok-to-test", "`/ok-to-test`: sha: `1a2` is not a commit id (write the full id of the head commit that you have read: its 40 hex digits)"},
		{"branch for a sha", "/ok-to-test main", "ok-to-test", "`/ok-to-test`: sha: `main` is not a commit id (write the full id of the head commit that you have read: its 40 hex digits)"},
		{"two shas", "/ok-to-test 1a2b3c4 1a2b3c5", "ok-to-test", "`/ok-to-test`: sha: `1a2b3c4 1a2b3c5` is not a commit id (write the full id of the head commit that you have read: its 40 hex digits)"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			got, ok := grammar.Parse(test.body)
			if got.Command != nil || !ok || got.Mistake == nil {
				t.Fatalf("got %v, %v", got, ok)
			}
			if got.Name() != test.command {
				t.Errorf("means %q, want %q", got.Name(), test.command)
			}
			if shown, _, _ := strings.Cut(got.String(), "  "); !strings.HasPrefix(test.body, strings.TrimSuffix(shown, "…")) {
				t.Errorf("shown as %q", got)
			}
			checkRoundTrip(t, got)
			if diff := cmp.Diff(test.want, got.Mistake.Problem); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

func TestRoles(t *testing.T) {
	roles := policy.Commands{Rebench: "r", Tune: "t", Bisect: "b", Cancel: "c", Explain: "e", Override: "o", OKToTest: "ok", ApprovePolicy: "a", Help: "h"}
	for body, want := range map[string]policy.Role{
		"/rebench": "r", "/tune": "t", "/bisect": "b", "/cancel": "c", "/explain": "e", "/override why not": "o", "/ok-to-test 1234567": "ok", "/approve-policy 1234567": "a", "/help": "h",
	} {
		r, _ := grammar.Parse(body)
		if got := grammar.Needs(r.Command, roles); got != want {
			t.Errorf("%s needs %q, want %q", body, got, want)
		}
	}
}

func TestHelp(t *testing.T) {
	const path = "testdata/help.md"
	got := grammar.Help(policy.Commands{
		Rebench: "write", Tune: "write", Bisect: "write", Cancel: "write", Explain: "read", Override: "maintain", OKToTest: "write", ApprovePolicy: "maintain", Help: "read",
	}, false)
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatalf("no golden file (go test ./bot/grammar -update writes it): %v", err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("%s differs (-golden +got; -update accepts):\n%s", path, diff)
	}
	if r, ok := grammar.Parse(got); ok {
		t.Errorf("the help is itself a command: %v", r)
	}
}

// FuzzParse checks that for any comment Parse returns a command that can be formatted and parsed
// again, or a reply that pings nobody, or nothing.
func FuzzParse(f *testing.F) {
	for _, test := range slices.Concat(commands, hidden) {
		f.Add(test.body)
	}
	f.Add("/override a ` <!-- x --> \n `")
	f.Add("/override a <!<!-- x -->-- y -->")
	f.Add("/rebench shapes=a,,b @org/team")
	f.Fuzz(func(t *testing.T, body string) {
		r, ok := grammar.Parse(body)
		if ok != (r.Command != nil || r.Mistake != nil) || r.Command != nil && r.Mistake != nil {
			t.Fatalf("got %#v, %v", r, ok)
		}
		if ok && utf8.ValidString(body) { // as in GitHub's JSON
			checkRoundTrip(t, r)
		}
		if r.Mistake == nil {
			return
		}
		reply := r.Mistake.Problem
		if strings.Count(reply, "`")%2 != 0 || strings.ContainsAny(reply, "\r\n") {
			t.Fatalf("reply %q", reply)
		}
		for i, piece := range strings.Split(reply, "`") {
			if i%2 == 0 && strings.ContainsAny(piece, "@<#[*\\") {
				t.Fatalf("reply %q shows %q outside of code", reply, piece)
			}
		}
	})
}
