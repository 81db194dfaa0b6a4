package main

// A target is a package whose mutants are tried.
type target struct {
	pkg   string   // below the module
	files []string // only these; empty for all
	users []string // packages that import it, whose tests are run where its own notice nothing
}

// targets are the packages that decide: a fault in one of them passes a kernel that should not pass, or the reverse. The users are
// those whose tests finish in seconds; the long tests of the bot, which would notice more, are left out.
var targets = []target{
	{pkg: "gates", users: []string{"gates/report", "bot/verify", "runners"}},
	{pkg: "gates/stats", users: []string{"gates"}},
	{pkg: "policies/policy", files: []string{"compare.go", "comparegates.go", "comparespeed.go"}, users: []string{"runners/gather/plan", "bot/planner"}},
	{pkg: "policies/compare", users: []string{"policies/policy", "kernels/manifest", "runners/gather/plan"}},
	{pkg: "kernels/manifest", files: []string{"join.go"}, users: []string{"runners/gather/plan"}},
	{pkg: "runners/backend/interleave"},
	{pkg: "runners/gather/plan", users: []string{"bot/planner"}},
	{pkg: "bot/answer"},
	{pkg: "bot/attempts", files: []string{"log.go", "marks.go"}},
	{pkg: "bot/change", users: []string{"bot/answer", "bot/publish", "bot/present"}},
	{pkg: "bot/publish"},
	{pkg: "bot/scheduler"},
	{pkg: "bot/verify"},
}

// longTests are not run: simulations that take seconds and are about error rates, not about single statements. Those that are
// marked as long (internal/long) leave themselves out.
var longTests = map[string][]string{
	"kernels/manifest": {"TestReference"},
	"bot/present":      {"FuzzRendered"},
	"bot/scheduler":    {"TestDayOfAFleet"},
}
