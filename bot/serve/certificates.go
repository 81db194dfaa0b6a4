package serve

import (
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"os"
)

// collectCertificates reports when the certificates expire that the connection to NATS needs. The files are read each time, as
// the NATS client reads them for each connection.
func (o observer) collectCertificates(send sender) {
	for key, file := range map[string]string{"nats_ca_file": o.opt.NATSRoots, "nats_certificate_file": o.opt.NATSCert} {
		if file == "" {
			continue
		}
		all, err := readCertificates(file)
		if err != nil {
			// The connection will fail when it is next made: somebody has to act, as for an expired certificate.
			send.expiry(labels{"key": key, "subject": "", "serial": ""}, 0)
		}
		for _, c := range all {
			send.certificate(key, c)
		}
	}
	if c := o.Journal.ServerCertificate(); c != nil {
		send.certificate("nats", c)
	}
}

func (s sender) certificate(key string, c *x509.Certificate) {
	s.expiry(labels{"key": key, "subject": c.Subject.String(), "serial": c.SerialNumber.Text(16)}, float64(c.NotAfter.Unix()))
}

func (s sender) expiry(l labels, at float64) {
	s.gauge("certificate_expiry_timestamp_seconds", "When a certificate for NATS expires; 0 if the file cannot be read.", at, l)
}

// readCertificates returns each certificate of a PEM file once.
func readCertificates(file string) ([]*x509.Certificate, error) {
	rest, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	var all []*x509.Certificate
	seen := map[string]bool{}
	for {
		var block *pem.Block
		if block, rest = pem.Decode(rest); block == nil {
			break
		}
		if block.Type != "CERTIFICATE" {
			continue
		}
		c, err := x509.ParseCertificate(block.Bytes)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", file, err)
		}
		// The labels must differ: two equal ones would make all of /metrics fail.
		if id := c.Subject.String() + " " + c.SerialNumber.Text(16); !seen[id] {
			seen[id] = true
			all = append(all, c)
		}
	}
	if len(all) == 0 {
		return nil, fmt.Errorf("%s has no certificate", file)
	}
	return all, nil
}
