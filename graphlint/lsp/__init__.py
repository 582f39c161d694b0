"""The language server: findings while you type. Needs the extra `lsp` (pygls)."""
