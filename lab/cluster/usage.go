package cluster

import (
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"
)

// Usage is what a process has taken of the machine.
type Usage struct {
	CPU     time.Duration // user and system time since its start, in steps of 10 ms
	RSS     int64         // resident memory now, in bytes
	PeakRSS int64         // the most it ever was, in bytes
}

// clockTick is the unit of processor time in /proc, the same on every Linux.
const clockTick = 10 * time.Millisecond

// Usage reads the account of a running process from /proc (Linux only).
func (p *Process) Usage() (Usage, error) {
	usage, err := UsageOf(p.PID())
	if err != nil {
		return Usage{}, fmt.Errorf("usage of %s: %w", p.Name, err)
	}
	return usage, nil
}

// UsageOf reads the account of a running process from /proc (Linux only).
func UsageOf(pid int) (usage Usage, err error) {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return Usage{}, err
	}
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return Usage{}, err
	}
	if usage.CPU, err = parseCPU(string(stat)); err != nil {
		return Usage{}, err
	}
	if usage.RSS, err = parseKiB(string(status), "VmRSS:"); err != nil {
		return Usage{}, err
	}
	usage.PeakRSS, err = parseKiB(string(status), "VmHWM:")
	return usage, err
}

// parseCPU adds user and system time in a line of /proc/PID/stat. The command's
// name, in parentheses, may itself hold spaces and parentheses.
func parseCPU(stat string) (time.Duration, error) {
	fields := strings.Fields(stat[strings.LastIndexByte(stat, ')')+1:])
	if len(fields) < 13 {
		return 0, errors.New("/proc/PID/stat is too short")
	}
	var ticks int64
	for _, field := range fields[11:13] {
		n, err := strconv.ParseInt(field, 10, 64)
		if err != nil {
			return 0, err
		}
		ticks += n
	}
	return time.Duration(ticks) * clockTick, nil
}

// parseKiB is the value of a line such as "VmRSS:    1234 kB", in bytes.
func parseKiB(status, key string) (int64, error) {
	for line := range strings.Lines(status) {
		if fields := strings.Fields(line); len(fields) >= 2 && fields[0] == key {
			n, err := strconv.ParseInt(fields[1], 10, 64)
			return n << 10, err
		}
	}
	return 0, fmt.Errorf("no %s in /proc/PID/status", key)
}
