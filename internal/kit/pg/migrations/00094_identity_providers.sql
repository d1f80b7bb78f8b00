-- +goose Up

-- Where an organization's people sign in, by OpenID Connect.
CREATE TABLE identity_providers (
    organization_id bigint PRIMARY KEY REFERENCES organizations ON DELETE CASCADE,
    issuer          text NOT NULL,
    client_id       text NOT NULL,
    sealed          bytea NOT NULL, -- the client's secret
    version         integer NOT NULL,
    ca              text NOT NULL DEFAULT '', -- PEM: authorities of its certificates; '': the public ones
    students        boolean NOT NULL, -- whether students may use it, too
    role_claim      text NOT NULL DEFAULT '', -- '': roles are given here alone
    roles           jsonb NOT NULL DEFAULT '{}', -- of the claim's values
    created_at      timestamptz NOT NULL,
    updated_at      timestamptz NOT NULL
);

-- Domains of mail addresses. One that is proven is one organization's alone.
CREATE TABLE mail_domains (
    organization_id bigint NOT NULL REFERENCES organizations ON DELETE CASCADE,
    domain          text NOT NULL,
    token           text NOT NULL, -- what the DNS has to say
    proven_at       timestamptz,
    proven_by       text CHECK (proven_by IN ('dns', 'platform')),
    created_at      timestamptz NOT NULL,
    PRIMARY KEY (organization_id, domain),
    CHECK ((proven_at IS NULL) = (proven_by IS NULL))
);
CREATE UNIQUE INDEX mail_domains_proven ON mail_domains (domain) WHERE proven_at IS NOT NULL;

-- Whether the staff must sign in there, and two owners who need not, for when the provider is away.
ALTER TABLE sign_in_policies ADD COLUMN provider_only boolean NOT NULL DEFAULT false;
ALTER TABLE sign_in_policies ADD COLUMN break_glass bigint[] NOT NULL DEFAULT '{}';
