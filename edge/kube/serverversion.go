package kube

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"sync/atomic"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/version"
	apiversion "k8s.io/apimachinery/pkg/version"
	"k8s.io/client-go/rest"
	baseversion "k8s.io/component-base/version"
	"k8s.io/klog/v2"
)

const (
	// versionTimeout is how long the answer to /version may take, and versionBytes how
	// much of it is read. versionLength is the length of the longest version accepted.
	versionTimeout = 10 * time.Second
	versionBytes   = 64 << 10
	versionLength  = 100
	// After a failure the version is read again after versionRetry. The wait doubles up to
	// versionRetryLimit.
	versionRetry, versionRetryLimit = time.Second, time.Minute
)

// ownVersion is the minor version of Kubernetes that this build stands on.
var ownVersion = version.MustParse(baseversion.DefaultKubeBinaryVersion)

// ServerVersion is a version of the API server. The zero value is one that is not known.
type ServerVersion struct {
	Git   string // such as v1.37.2
	Minor string // such as 1.37
	Newer int    // by how many minor versions it is newer than this build; negative: older
}

// Supported reports whether this build serves an API server of the version: one of the build's
// minor version, of the next one, as a scheduler is upgraded after its API server, or of the
// one before, for those who upgrade in another order. It is true for a version that is not
// known.
func (v ServerVersion) Supported() bool { return v.Newer >= -1 && v.Newer <= 1 }

// SupportedServers returns the versions of API servers that this build serves: 1.36 to 1.38.
func SupportedServers() string {
	return fmt.Sprintf("%s to %s", ownVersion.SubtractMinor(1), ownVersion.AddMinor(1))
}

// serverVersion reads the version of the API server whenever wake is called.
type serverVersion struct {
	client rest.Interface
	logger klog.Logger
	asked  chan struct{}                 // holds a value if the version is to be read
	last   atomic.Pointer[ServerVersion] // the version read last; nil: none was
	failed atomic.Pointer[error]         // why the last try failed; nil: it did not
}

// newServerVersion returns a reader of the version. It reads nothing before run and wake.
func newServerVersion(client rest.Interface, logger klog.Logger) *serverVersion {
	return &serverVersion{client: client, logger: logger, asked: make(chan struct{}, 1)}
}

// ServerVersion returns the version that the API server named last; the zero value if none was
// read yet.
func (w *Watcher) ServerVersion() ServerVersion {
	if v := w.version.last.Load(); v != nil {
		return *v
	}
	return ServerVersion{}
}

// VersionUnread returns why the version of the API server could not be read when it was tried
// last; nil if it was read, or was not tried yet.
func (w *Watcher) VersionUnread() error {
	if err := w.version.failed.Load(); err != nil {
		return *err
	}
	return nil
}

// wake causes run to read the version: the server may be another one. It never waits.
func (s *serverVersion) wake() {
	select {
	case s.asked <- struct{}{}:
	default:
	}
}

// run reads the version each time that wake was called, until the context ends. It tries again
// after failures that may pass.
func (s *serverVersion) run(ctx context.Context) {
	for {
		select {
		case <-s.asked:
		case <-ctx.Done():
			return
		}
		err := s.update(ctx)
		if err != nil && ctx.Err() == nil {
			s.logger.Info("Failed to read the version of the API server", "err", err)
		}
		for delay := versionRetry; mayPass(err) && sleep(ctx, delay); delay = min(2*delay, versionRetryLimit) {
			err = s.update(ctx)
		}
	}
}

// mayPass reports whether a read that failed with err may succeed another time: false if err is
// nil, or the server denies the right or does not serve /version.
func mayPass(err error) bool {
	return err != nil && !apierrors.IsForbidden(err) && !apierrors.IsUnauthorized(err) && !apierrors.IsNotFound(err)
}

// update reads the version and stores it, and logs it if it is not the one before. If it cannot
// be read, the one before stays, and the error is stored and returned.
func (s *serverVersion) update(ctx context.Context) error {
	v, err := s.read(ctx)
	if err != nil {
		s.failed.Store(&err)
		return err
	}
	s.failed.Store(nil)
	switch before := s.last.Swap(&v); {
	case before != nil && *before == v:
	case v.Supported():
		s.logger.Info("Read the version of the API server", "version", v.Git)
	default:
		s.logger.Error(nil, "The API server is of a version that this build does not support", "version", v.Git, "supported", SupportedServers())
	}
	return nil
}

// read requests the version from /version once, and returns it.
func (s *serverVersion) read(ctx context.Context) (v ServerVersion, err error) {
	ctx, cancel := context.WithTimeout(ctx, versionTimeout)
	defer cancel()
	body, err := s.client.Get().AbsPath("/version").MaxRetries(0).Stream(ctx)
	if err != nil {
		return v, err
	}
	defer body.Close()
	text, err := io.ReadAll(io.LimitReader(body, versionBytes))
	if err != nil {
		return v, err
	}
	var info apiversion.Info
	if err := json.Unmarshal(text, &info); err != nil {
		return v, fmt.Errorf("/version: %w", err)
	}
	return parseServerVersion(info.GitVersion)
}

// parseServerVersion parses a version such as v1.37.2 or v1.36.5-vendor.1. It returns an error
// if the major version is not that of this build.
func parseServerVersion(git string) (v ServerVersion, err error) {
	if len(git) > versionLength {
		return v, fmt.Errorf("/version: gitVersion: %d characters, more than %d", len(git), versionLength)
	}
	parsed, err := version.ParseGeneric(git)
	if err != nil {
		return v, fmt.Errorf("/version: gitVersion: %w", err)
	}
	if parsed.Major() != ownVersion.Major() || parsed.Minor() > 1000 {
		return v, fmt.Errorf("/version: gitVersion: %q is no version of Kubernetes %d", git, ownVersion.Major())
	}
	v = ServerVersion{Git: git, Minor: fmt.Sprintf("%d.%d", parsed.Major(), parsed.Minor()), Newer: int(parsed.Minor()) - int(ownVersion.Minor())}
	return v, nil
}
