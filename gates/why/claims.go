package why

import "regexp"

// claimed is the words by which an author names a mechanism, and the measure that shows it.
var claimed = []struct {
	words *regexp.Regexp
	id    string
}{
	{regexp.MustCompile(`(?i)\bbank.?conflict|\bswizzl`), "conflicts"},
	{regexp.MustCompile(`(?i)\boccupancy\b`), "occupancy"},
	{regexp.MustCompile(`(?i)\b(un)?coalesc`), "excess"},
	{regexp.MustCompile(`(?i)\bspill`), "local"},
	{regexp.MustCompile(`(?i)\bL2\b`), "l2_hit"},
	{regexp.MustCompile(`(?i)\btensor.?cores?\b|\bw?mma\b|\bwgmma\b`), "tensor"},
	{regexp.MustCompile(`(?i)\bregisters?\b`), "registers"},
	{regexp.MustCompile(`(?i)\bdiverge`), "lanes"},
	{regexp.MustCompile(`(?i)\bfp64\b|\bdouble precision\b`), "fp64"},
	{regexp.MustCompile(`(?i)\bvectori[sz]|\bvector (load|store)|\bfloat4\b|\bint4 load`), "access_bytes"},
	{regexp.MustCompile(`(?i)\bbarriers?\b|\bsyncthreads\b|\bsynchroni[sz]`), "barrier"},
	{regexp.MustCompile(`(?i)\b(dram|bandwidth)\b`), "dram"},
	{regexp.MustCompile(`(?i)\btail (wave|effect)|\bwave quanti[sz]`), "waves"},
	{regexp.MustCompile(`(?i)\bbranch(es|less)?\b|\bmispredict`), "cpu_branch_misses"},
	{regexp.MustCompile(`(?i)\bcache miss|\bcache.?friendly\b|\blocality\b|\b(cache|loop).?(block|til)ing\b`), "cpu_cache_misses"},
	{regexp.MustCompile(`(?i)\bTLB\b|\bhuge ?pages?\b`), "cpu_tlb_misses"},
	{regexp.MustCompile(`(?i)\bpage.?faults?\b|\ballocat|\bmalloc\b`), "cpu_page_faults"},
}

// maxClaims bounds the rows that an author can ask for.
const maxClaims = 4

// Claims returns the measures that a text names: the title or the description of a change.
func Claims(texts ...string) []string {
	var ids []string
	for _, c := range claimed {
		for _, text := range texts {
			if len(ids) < maxClaims && c.words.MatchString(text) {
				ids = append(ids, c.id)
				break
			}
		}
	}
	return ids
}
