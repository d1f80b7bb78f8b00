-- +goose Up

-- The Kubernetes resource that keeps an organization, and which of its settings it keeps. Staff cannot change these.
ALTER TABLE organizations ADD COLUMN managed_by text;
ALTER TABLE organizations ADD COLUMN managed_fields text[] NOT NULL DEFAULT '{}';
ALTER TABLE members ADD COLUMN managed boolean NOT NULL DEFAULT false;
