package attack

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/berth-scheduler/berth/lab/cluster"
)

var machineAttacks = []Attack{
	{Name: "machine/full-disk", start: recording, play: fullDisk,
		Title: "the disk of the record fills and is freed, again and again, while pods come and go"},
	{Name: "machine/suspended", start: plain, play: suspended,
		Title: "the daemon stands still for 5 s, and objects have times of a clock that was set"},
}

// diskSize is the size of the disk of the record, in bytes.
const diskSize = 16 << 20

func (s *stage) disk() string   { return filepath.Join(s.dir, "disk") }
func (s *stage) record() string { return filepath.Join(s.disk(), "record") }

// recording starts a daemon that records on a small disk in memory.
func recording(s *stage) cluster.SchedulerOptions {
	s.note(os.Mkdir(s.disk(), 0o700))
	if err := syscall.Mount("tmpfs", s.disk(), "tmpfs", 0, fmt.Sprintf("size=%d", diskSize)); err != nil {
		s.skip("a disk cannot be mounted: %v", err)
	}
	s.finally(func() { _ = syscall.Unmount(s.disk(), syscall.MNT_DETACH) }) // not mounted if the attack was skipped
	return cluster.SchedulerOptions{Flags: []string{"--record-to=" + s.record()}}
}

// fullDisk fills the disk in the middle of what is written. While nothing is recorded,
// pods go that were there, come again under the same names, and go for good. The record
// goes on when it tries again, after ten seconds, and is replayed.
func fullDisk(s *stage) {
	done := make(chan struct{})
	var churn sync.WaitGroup
	churn.Go(func() { s.churn(done) })
	ballast := filepath.Join(s.disk(), "ballast")
	for round := range 2 {
		s.rest(time.Second)
		s.createLarge(round)
		s.rest(time.Second)
		s.fill(ballast)
		s.rest(3 * time.Second)
		s.deleteLarge(round)
		s.createLarge(round)
		s.rest(time.Second)
		s.deleteLarge(round)
		s.note(os.Remove(ballast))
		s.rest(14 * time.Second)
	}
	close(done)
	churn.Wait()
	s.halt()
	a := s.berth("replay", s.record(), "-o", "json")
	var came struct {
		Runs, Steps, Same, Unverified, Different int
		Notes                                    []string
	}
	err := json.Unmarshal([]byte(a.stdout), &came)
	switch {
	case a.status != 0 || err != nil:
		s.broke("the record does not replay: exit status %d, %v: %+v %s", a.status, err, came, short(a.stderr))
	case came.Runs < 2:
		s.note(fmt.Errorf("the record has no gap: %+v", came))
	case came.Unverified > came.Same: // which were compared and are the same
		s.broke("most decisions of the record cannot be compared: %+v", came)
	}
}

// largePodsOfRound is how many pods go while the disk is full.
const largePodsOfRound = 20

func largeName(round, i int) string { return fmt.Sprintf("large-%d-%d", round, i) }

// createLarge creates pods that leave a node no room for another one of them.
func (s *stage) createLarge(round int) {
	s.create(largePodsOfRound, func(i int) *corev1.Pod { return newPod(target, largeName(round, i), "5") })
}

func (s *stage) deleteLarge(round int) {
	now := int64(0)
	s.many(largePodsOfRound, func(i int) error {
		return s.lab.client.CoreV1().Pods(target).Delete(s.ctx, largeName(round, i), metav1.DeleteOptions{GracePeriodSeconds: &now})
	})
}

// fill writes a file until the disk is full.
func (s *stage) fill(path string) {
	f, err := os.Create(path)
	if !s.note(err) {
		return
	}
	defer f.Close()
	for part := make([]byte, 1<<10); err == nil; {
		_, err = f.Write(part)
	}
}

// churn creates and deletes pods, each in its own time and again and again under its
// name, until done is closed.
func (s *stage) churn(done <-chan struct{}) {
	const names = 30
	now := int64(0)
	pods := s.lab.client.CoreV1().Pods(target)
	var churning sync.WaitGroup
	for i := range names {
		churning.Go(func() {
			p := newPod(target, fmt.Sprintf("churn-%d", i), []string{"1", "3", "5", "1k"}[i%4])
			for s.failure() == nil {
				_, err := pods.Create(s.ctx, p, metav1.CreateOptions{})
				s.note(err)
				s.rest(rand.N(time.Second))
				s.note(pods.Delete(s.ctx, p.Name, metav1.DeleteOptions{GracePeriodSeconds: &now}))
				select {
				case <-done:
					return
				case <-time.After(rand.N(time.Second)):
				}
			}
		})
	}
	churning.Wait()
}

// suspended stops the daemon for a while. The lab cannot set the clock of one process:
// sim/chaos plays daemons whose wall clock is set.
func suspended(s *stage) {
	s.daemon.Suspend()
	s.create(50, func(i int) *corev1.Pod { return newPod(target, fmt.Sprintf("meanwhile-%d", i), "1m") })
	s.rest(5 * time.Second)
	s.daemon.Resume()
	for i, at := range []time.Time{time.Unix(0, 0), time.Date(9999, 1, 1, 0, 0, 0, 0, time.UTC)} {
		p := newPod(target, fmt.Sprintf("timed-%d", i), "1k")
		made, err := s.lab.client.CoreV1().Pods(target).Create(s.ctx, p, metav1.CreateOptions{})
		if !s.note(err) {
			return
		}
		when := metav1.NewTime(at)
		made.Status.StartTime = &when
		made.Status.Conditions = append(made.Status.Conditions, corev1.PodCondition{Type: corev1.PodReady, Status: corev1.ConditionFalse, LastTransitionTime: when})
		_, err = s.lab.client.CoreV1().Pods(target).UpdateStatus(s.ctx, made, metav1.UpdateOptions{})
		s.note(err)
	}
	s.need("all pods to be bound or rejected", func() bool { return s.allTried(target) })
	s.askBoth("why", "--all")
	s.berth(with(s.asking(s.lab.reader), "top", "--once")...)
}
