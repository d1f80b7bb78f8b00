package stack

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// Archives are Patroni's parameters with which PostgreSQL archives its log while the folder exists.
func Archives(folder string) map[string]string {
	return map[string]string{"archive_mode": "on", "archive_command": fmt.Sprintf("test ! -d %s || cp %%p %[1]s/%%f", folder)}
}

// Backup begins a folder for the log's archive and copies the primary's data to another one, beside it.
func (p *Patroni) Backup(ctx context.Context, archive, backup string) error {
	for _, dir := range []string{archive, backup} {
		if err := errors.Join(os.RemoveAll(dir), os.MkdirAll(dir, 0o700), p.options.User.own(dir)); err != nil {
			return err
		}
	}
	o := PostgresOptions{Bin: p.options.PostgresBin, Dir: p.dir, User: p.options.User}
	return o.run(ctx, "pg_basebackup", "--pgdata="+backup, "--dbname="+p.Server().URL("postgres"), "--wal-method=stream", "--checkpoint=fast", "--no-sync")
}

// Restore brings the cluster back as it was at a moment after Backup, as docs/restore.md does with one server: the
// first node gets the copy and reads the log until then, and the others copy it.
func (p *Patroni) Restore(ctx context.Context, archive, backup, moment string) error {
	for _, n := range p.Nodes {
		if err := n.Stop(); err != nil {
			return err
		}
		if err := errors.Join(os.RemoveAll(n.data), p.forget(ctx, "members/"+n.Name)); err != nil {
			return err
		}
	}
	first := p.Nodes[0]
	if text, err := exec.CommandContext(ctx, "cp", "-a", backup, first.data).CombinedOutput(); err != nil {
		return fmt.Errorf("cp: %w: %s", err, text)
	}
	signal := filepath.Join(first.data, "recovery.signal")
	if err := errors.Join(os.WriteFile(signal, nil, 0o600), p.options.User.own(signal)); err != nil {
		return err
	}
	server, err := StartPostgres(ctx, PostgresOptions{Bin: p.options.PostgresBin, Dir: first.data, Port: first.Port, User: p.options.User,
		LogFile: filepath.Join(p.dir, "restore.log"), Durable: true, Settings: []string{
			// Patroni's own settings may name another target.
			"recovery_target=", "recovery_target_lsn=", "recovery_target_name=", "recovery_target_xid=", "recovery_target_timeline=latest",
			"restore_command=cp " + archive + "/%f %p", "recovery_target_time=" + moment, "recovery_target_action=promote",
			"archive_mode=off", "synchronous_standby_names=",
			"hba_file=" + filepath.Join(first.data, "pg_hba.conf"), "ident_file=" + filepath.Join(first.data, "pg_ident.conf")}})
	if err != nil {
		return err
	}
	err = server.ask(ctx, `SELECT NOT pg_is_in_recovery()`)
	if err = errors.Join(err, server.Stop(), os.RemoveAll(archive), os.RemoveAll(backup)); err != nil {
		return err
	}
	// What Patroni has agreed on of its settings stays; of who leads and how far the log is, nothing does.
	if err := p.forget(ctx, "leader", "status", "sync", "history", "failover", "failsafe"); err != nil {
		return err
	}
	if err := first.Start(); err != nil {
		return err
	}
	if err := p.awaitPrimary(ctx, first); err != nil {
		return err
	}
	for _, n := range p.Nodes[1:] {
		if err := n.Start(); err != nil {
			return err
		}
	}
	return p.AwaitStandby(ctx)
}

func (p *Patroni) awaitPrimary(ctx context.Context, n *PatroniNode) error {
	ctx, cancel := context.WithTimeout(ctx, patroniStartsWithin)
	defer cancel()
	return n.Await(ctx, func(ctx context.Context) error {
		_, err := p.Primary(ctx)
		return err
	})
}

// forget deletes keys of the cluster from etcd.
func (p *Patroni) forget(ctx context.Context, keys ...string) error {
	for _, key := range keys {
		body := fmt.Sprintf(`{"key": %q}`, base64.StdEncoding.EncodeToString([]byte("/service/registrar/"+key)))
		if _, err := exchange(ctx, http.DefaultClient, http.MethodPost, p.etcd+"/v3/kv/deleterange", "", body); err != nil {
			return fmt.Errorf("forgetting %s: %w", strings.TrimSpace(key), err)
		}
	}
	return nil
}
