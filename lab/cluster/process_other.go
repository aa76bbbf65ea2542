//go:build !linux

package cluster

import "syscall"

// childAttributes: only a lab that ends by itself ends its children here.
func childAttributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true}
}
