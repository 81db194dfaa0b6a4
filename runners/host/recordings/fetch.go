package recordings

import (
	"context"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"os"
	"path/filepath"
	"syscall"
	"time"
)

const (
	fetchTime    = 2 * time.Minute
	mostRedirect = 3
)

// A Fetcher downloads files by https and keeps them. It sends no credential, uses no proxy, and connects to public
// addresses only, also where a redirect or a name leads: whoever can name an address must not reach what only this host
// can reach.
type Fetcher struct {
	Cache string         // folder of the files that were fetched
	Roots *x509.CertPool // nil means the system's
	// Allow reports whether an address may be connected to; nil means public ones.
	Allow func(netip.Addr) bool
}

// Here returns a fetcher that keeps files in the user's cache, ${XDG_CACHE_HOME:-~/.cache}/kernelgate/recordings; nil
// where the user has none.
func Here(getenv func(string) string) *Fetcher {
	cache := getenv("XDG_CACHE_HOME")
	if home := getenv("HOME"); cache == "" && home != "" {
		cache = filepath.Join(home, ".cache")
	}
	if !filepath.IsAbs(cache) {
		return nil
	}
	return &Fetcher{Cache: filepath.Join(cache, "kernelgate", "recordings")}
}

// Get returns the file at an address, which has the given digest.
func (f *Fetcher) Get(ctx context.Context, address, digest string) ([]byte, error) {
	// A file that one repository had fetched is not given to another that knows its digest only.
	kept := filepath.Join(f.Cache, fmt.Sprintf("%x", sha256.Sum256([]byte(address+"\n"+digest))))
	if data, err := readUpTo(kept); err == nil && digestOf(data) == digest {
		return data, nil
	}
	ctx, cancel := context.WithTimeout(ctx, fetchTime)
	defer cancel()
	data, err := f.download(ctx, address)
	if err != nil {
		return nil, fmt.Errorf("fetching it: %w", err)
	}
	if got := digestOf(data); got != digest {
		return nil, fmt.Errorf("the address has a file with the SHA-256 %s, and the manifest says %s", got, digest)
	}
	return data, f.keep(kept, data)
}

func digestOf(data []byte) string { return fmt.Sprintf("%x", sha256.Sum256(data)) }

func (f *Fetcher) download(ctx context.Context, address string) ([]byte, error) {
	dialer := &net.Dialer{Timeout: 10 * time.Second, ControlContext: f.control}
	transport := &http.Transport{
		DialContext: dialer.DialContext, TLSClientConfig: &tls.Config{RootCAs: f.Roots, MinVersion: tls.VersionTLS12},
		TLSHandshakeTimeout: 10 * time.Second, DisableKeepAlives: true, DisableCompression: true, ForceAttemptHTTP2: true,
	}
	client := &http.Client{Transport: transport, CheckRedirect: func(r *http.Request, via []*http.Request) error {
		switch {
		case r.URL.Scheme != "https":
			return errors.New("it redirects to an address without https")
		case len(via) > mostRedirect:
			return fmt.Errorf("it redirects more than %d times", mostRedirect)
		}
		return nil
	}}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return nil, errors.New("the address cannot be read")
	}
	if request.URL.Scheme != "https" {
		return nil, errors.New("the address is without https")
	}
	response, err := client.Do(request)
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("the server answers %s", response.Status)
	}
	data, err := io.ReadAll(io.LimitReader(response.Body, MaxBytes+1))
	if err == nil && len(data) > MaxBytes {
		err = errLarge
	}
	return data, err
}

// control refuses a connection once the name is resolved: a name may lead anywhere.
func (f *Fetcher) control(_ context.Context, _, address string, _ syscall.RawConn) error {
	at, err := netip.ParseAddrPort(address)
	if err != nil {
		return fmt.Errorf("%s is no address", address)
	}
	allowed := public
	if f.Allow != nil {
		allowed = f.Allow
	}
	if ip := at.Addr().Unmap(); !allowed(ip) {
		return fmt.Errorf("%s is no public address: recordings come from public addresses, or from the repository", ip)
	}
	return nil
}

// special are networks that no public server is in, in addition to those that net/netip knows.
var special = []netip.Prefix{
	netip.MustParsePrefix("0.0.0.0/8"), netip.MustParsePrefix("100.64.0.0/10"), netip.MustParsePrefix("192.0.0.0/24"), netip.MustParsePrefix("198.18.0.0/15"),
	netip.MustParsePrefix("240.0.0.0/4"), netip.MustParsePrefix("64:ff9b::/96"), netip.MustParsePrefix("64:ff9b:1::/48"), netip.MustParsePrefix("2002::/16"), netip.MustParsePrefix("fec0::/10"),
}

func public(ip netip.Addr) bool {
	if !ip.IsGlobalUnicast() || ip.IsPrivate() {
		return false
	}
	for _, network := range special {
		if network.Contains(ip) {
			return false
		}
	}
	return true
}

// keep stores a file, whole or not at all, for this user only.
func (f *Fetcher) keep(name string, data []byte) error {
	if err := os.MkdirAll(f.Cache, 0o700); err != nil {
		return fmt.Errorf("keeping it: %w", err)
	}
	part, err := os.CreateTemp(f.Cache, "part-")
	if err != nil {
		return fmt.Errorf("keeping it: %w", err)
	}
	_, err = part.Write(data)
	if err = errors.Join(err, part.Close()); err == nil {
		err = os.Rename(part.Name(), name)
	}
	if err != nil {
		os.Remove(part.Name())
		return fmt.Errorf("keeping it: %w", err)
	}
	return nil
}
