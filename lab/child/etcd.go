package child

import (
	"flag"
	"net/url"
	"os"
	"os/signal"
	"syscall"

	"go.etcd.io/etcd/server/v3/embed"
)

// runEtcd serves one etcd member on a unix socket in the working directory, so
// that it takes no port and no one but the owner of the directory reaches it.
// It has no peers, and does not wait for the disk: a lab's data need not
// survive a power cut.
func runEtcd(args []string) error {
	flags := flag.NewFlagSet("etcd", flag.ContinueOnError)
	dir := flags.String("data-dir", "etcd", "where the data is kept")
	socket := flags.String("socket", "etcd:2379", "the unix socket to serve on, in the working directory; etcd wants the form host:port")
	if err := flags.Parse(args); err != nil {
		return err
	}
	// A socket left by a killed predecessor cannot be listened on again.
	if err := os.Remove(*socket); err != nil && !os.IsNotExist(err) {
		return err
	}
	endpoint := url.URL{Scheme: "unix", Host: *socket}

	config := embed.NewConfig()
	config.Dir = *dir
	config.ListenPeerUrls = nil
	config.ListenClientUrls = []url.URL{endpoint}
	config.AdvertiseClientUrls = []url.URL{endpoint}
	config.UnsafeNoFsync = true
	config.LogLevel = "warn"
	config.WarningUnaryRequestDuration = embed.DefaultWarningUnaryRequestDuration // unset, it warns of every request
	config.QuotaBackendBytes = 8 << 30
	server, err := embed.StartEtcd(config)
	if err != nil {
		return err
	}
	defer server.Close()

	stop := make(chan os.Signal, 1)
	signal.Notify(stop, syscall.SIGTERM, syscall.SIGINT)
	select {
	case <-stop:
		return nil
	case err := <-server.Err():
		return err
	}
}
