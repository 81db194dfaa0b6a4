package recordings

import (
	"crypto/x509"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os"
	"strings"
	"sync/atomic"
	"testing"
)

// A real server with TLS: what it has is checked, kept, and fetched once.
func TestFetch(t *testing.T) {
	content := strings.Repeat("recorded", 100)
	var asked atomic.Int32
	mux := http.NewServeMux()
	server := httptest.NewTLSServer(mux)
	defer server.Close()
	plain := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.Write([]byte(content)) }))
	defer plain.Close()
	mux.HandleFunc("/a", func(w http.ResponseWriter, r *http.Request) {
		asked.Add(1)
		if r.Header.Get("Authorization") != "" || r.Header.Get("Cookie") != "" {
			t.Error("a credential was sent")
		}
		w.Write([]byte(content))
	})
	mux.HandleFunc("/moved", func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, "/a", http.StatusFound) })
	mux.HandleFunc("/round", func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, "/round", http.StatusFound) })
	mux.HandleFunc("/plain", func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, plain.URL, http.StatusFound) })
	mux.HandleFunc("/inside", func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, strings.Replace(server.URL, "127.0.0.1", "127.0.0.2", 1)+"/a", http.StatusFound)
	})
	mux.HandleFunc("/large", func(w http.ResponseWriter, r *http.Request) {
		block := make([]byte, 1<<20)
		for range MaxBytes>>20 + 1 {
			if _, err := w.Write(block); err != nil {
				return
			}
		}
	})
	roots := x509.NewCertPool()
	roots.AddCert(server.Certificate())
	loopback := netip.MustParseAddr("127.0.0.1")
	f := &Fetcher{Cache: t.TempDir() + "/cache", Roots: roots, Allow: func(ip netip.Addr) bool { return ip == loopback }}
	digest := digestOf([]byte(content))
	for range 2 {
		data, err := f.Get(t.Context(), server.URL+"/a", digest)
		if err != nil || string(data) != content {
			t.Fatalf("%d bytes, %v", len(data), err)
		}
	}
	if asked.Load() != 1 {
		t.Errorf("the server was asked %d times for one file", asked.Load())
	}
	// What is kept is checked again: a file that was changed there is fetched anew.
	kept, err := os.ReadDir(f.Cache)
	if err != nil || len(kept) != 1 {
		t.Fatalf("%d files are kept: %v", len(kept), err)
	}
	if err := os.WriteFile(f.Cache+"/"+kept[0].Name(), []byte("other"), 0o600); err != nil {
		t.Fatal(err)
	}
	if data, err := f.Get(t.Context(), server.URL+"/a", digest); err != nil || string(data) != content || asked.Load() != 2 {
		t.Errorf("after the cache was changed: %d bytes, %v", len(data), err)
	}
	// Another address with the same digest gets nothing from the cache.
	if _, err := f.Get(t.Context(), server.URL+"/none", digest); err == nil || !strings.Contains(err.Error(), "404") {
		t.Errorf("a file was given to an address that does not have it: %v", err)
	}
	if data, err := f.Get(t.Context(), server.URL+"/moved", digest); err != nil || string(data) != content {
		t.Errorf("a redirect within https: %d bytes, %v", len(data), err)
	}
	for path, want := range map[string]string{
		"/round": "it redirects more than 3 times", "/plain": "it redirects to an address without https",
		"/inside": "127.0.0.2 is no public address", "/large": "it has more than 64 MiB",
	} {
		if _, err := f.Get(t.Context(), server.URL+path, digest); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %s", path, err, want)
		}
	}
	if _, err := f.Get(t.Context(), server.URL+"/a", digestOf(nil)); err == nil || !strings.Contains(err.Error(), "and the manifest says") {
		t.Errorf("another digest: %v", err)
	}
	if _, err := f.Get(t.Context(), plain.URL, digest); err == nil || !strings.Contains(err.Error(), "without https") {
		t.Errorf("an address without https: %v", err)
	}
	if _, err := (&Fetcher{Cache: t.TempDir(), Allow: f.Allow}).Get(t.Context(), server.URL+"/a", digest); err == nil || !strings.Contains(err.Error(), "certificate") {
		t.Errorf("a certificate that nobody signed: %v", err)
	}
	// Without Allow nothing on this host or in its network is reached.
	if _, err := (&Fetcher{Cache: t.TempDir(), Roots: roots}).Get(t.Context(), server.URL+"/a", digest); err == nil || !strings.Contains(err.Error(), "127.0.0.1 is no public address") {
		t.Errorf("the loopback: %v", err)
	}
}

func TestPublic(t *testing.T) {
	for ip, want := range map[string]bool{
		"8.8.8.8": true, "2606:4700::1111": true, "127.0.0.1": false, "10.1.2.3": false, "172.16.0.1": false, "192.168.1.1": false, "169.254.169.254": false,
		"100.64.0.1": false, "0.0.0.0": false, "224.0.0.1": false, "255.255.255.255": false, "::1": false, "fe80::1": false, "fd00::1": false, "::": false, "64:ff9b::a00:1": false, "2002:a00:1::": false,
	} {
		if got := public(netip.MustParseAddr(ip)); got != want {
			t.Errorf("%s: public is %v", ip, got)
		}
	}
}
