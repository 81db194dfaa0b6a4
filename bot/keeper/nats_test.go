package keeper_test

import (
	"fmt"
	"io"
	"net"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"

	natsserver "github.com/nats-io/nats-server/v2/server"
)

// nodeEnv makes the test binary a NATS server: its number, its folder and the ports of all.
const nodeEnv = "KERNELGATE_TEST_NATS"

// serveNode runs until it is killed, or its parent has gone.
func serveNode(text string) error {
	parts := strings.Split(text, "|")
	number, _ := strconv.Atoi(parts[0])
	ports := strings.Split(parts[2], ",") // clients' and cluster's, in turn
	port := func(i int) int { n, _ := strconv.Atoi(ports[i]); return n }
	opt := &natsserver.Options{
		ServerName: "node" + parts[0], Host: "127.0.0.1", Port: port(2 * number), NoSigs: true, NoLog: true,
		JetStream: true, StoreDir: parts[1], SyncAlways: true, MaxPayload: 32 << 20, MaxPending: 256 << 20,
	}
	if len(ports) > 2 {
		opt.Cluster = natsserver.ClusterOpts{Name: "test", Host: "127.0.0.1", Port: port(2*number + 1)}
		for i := 1; i < len(ports); i += 2 {
			opt.Routes = append(opt.Routes, &url.URL{Scheme: "nats", Host: "127.0.0.1:" + ports[i]})
		}
	}
	srv, err := natsserver.NewServer(opt)
	if err != nil {
		return err
	}
	srv.Start()
	_, err = io.Copy(io.Discard, os.Stdin)
	return err
}

func (b *bots) startNode(i int) {
	b.Helper()
	node := exec.Command(os.Args[0])
	node.Env = append(os.Environ(), fmt.Sprintf("%s=%d|%s|%s", nodeEnv, i, filepath.Join(b.dir, fmt.Sprint("nats", i)), strings.Join(b.ports, ",")))
	node.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	_, err := node.StdinPipe() // it ends with the parent
	b.no(err)
	b.no(node.Start())
	b.nodes[i] = node
	b.poll("a NATS server", func() bool {
		c, err := net.Dial("tcp", "127.0.0.1:"+b.ports[2*i])
		if err == nil {
			c.Close()
		}
		return err == nil
	})
}
