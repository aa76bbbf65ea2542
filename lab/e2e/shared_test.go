package e2e

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"

	"github.com/berth-scheduler/berth/lab/cluster"
)

// What the tests of this package share: one build of the programs, one control
// plane. Both are made when first wanted and gone when the package ends.
var shared struct {
	build   sync.Once
	bin     string // directory of the programs
	start   sync.Once
	cluster *cluster.Cluster
	err     error
}

// programs is the directory in which berth-scheduler and berth are, built from
// the source beside the lab.
func programs(t *testing.T) string {
	t.Helper()
	shared.build.Do(func() {
		if shared.bin, shared.err = os.MkdirTemp("", "berth-e2e-"); shared.err != nil {
			return
		}
		build := exec.Command("go", "build", "-o", shared.bin+string(filepath.Separator), "./cmd/...")
		build.Dir = filepath.Join("..", "..")
		if out, err := build.CombinedOutput(); err != nil {
			shared.err = fmt.Errorf("building Berth: %w\n%s", err, out)
		}
	})
	if shared.err != nil {
		t.Fatal(shared.err)
	}
	return shared.bin
}

// controlPlane is the shared cluster: complete, without a scheduler, with the
// nodes of nobody.
func controlPlane(t *testing.T) *cluster.Cluster {
	t.Helper()
	if testing.Short() {
		t.Skip("starts a control plane")
	}
	shared.start.Do(func() {
		shared.cluster, shared.err = cluster.Start(context.Background(), cluster.Options{ControlPlane: *skew})
	})
	if shared.err != nil {
		t.Fatal(shared.err)
	}
	return shared.cluster
}

func endShared() error {
	var errs []error
	if shared.cluster != nil {
		errs = append(errs, shared.cluster.Close())
	}
	if shared.bin != "" {
		errs = append(errs, os.RemoveAll(shared.bin))
	}
	return errors.Join(errs...)
}
