package cluster

import "syscall"

// childAttributes: the kernel kills the child when the lab is gone.
func childAttributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}
