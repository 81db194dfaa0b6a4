package pages

import (
	"compress/gzip"
	"io"
	"net/http"
	"strconv"
	"strings"
	"sync"
)

// compressFrom is the size from which an answer is compressed. A smaller answer fits into one
// packet.
const compressFrom = 1400

var writers = sync.Pool{New: func() any { return gzip.NewWriter(io.Discard) }}

// send writes an answer, compressed if the client accepts that. The content type is already set.
//
// A page that contains the proof of a session is not compressed. The page also contains text by
// strangers, such as a title. The compressed length would tell an eavesdropper whether that text
// resembles the proof (BREACH).
func send(w http.ResponseWriter, r *http.Request, status int, body []byte, secret bool) {
	w.Header().Add("Vary", "Accept-Encoding")
	if len(body) < compressFrom || secret || !takesGzip(r) {
		w.Header().Set("Content-Length", strconv.Itoa(len(body)))
		w.WriteHeader(status)
		_, _ = w.Write(body) // the client may have hung up
		return
	}
	w.Header().Set("Content-Encoding", "gzip")
	w.WriteHeader(status)
	to := writers.Get().(*gzip.Writer)
	defer writers.Put(to)
	to.Reset(w)
	_, _ = to.Write(body) // the client may have hung up
	_ = to.Close()
}

// takesGzip parses Accept-Encoding as far as a server needs it. A quality of 0 refuses.
func takesGzip(r *http.Request) bool {
	for part := range strings.SplitSeq(r.Header.Get("Accept-Encoding"), ",") {
		name, quality, _ := strings.Cut(strings.TrimSpace(part), ";")
		if strings.EqualFold(strings.TrimSpace(name), "gzip") {
			q, _ := strings.CutPrefix(strings.ReplaceAll(quality, " ", ""), "q=")
			value, err := strconv.ParseFloat(q, 64)
			return err != nil || value > 0
		}
	}
	return false
}
