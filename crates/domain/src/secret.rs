//! API keys: `srt_live_` or `srt_test_`, 30 base62 characters of secret, 6 of CRC32.
//!
//! The checksum refuses a typo without a query and lets a leak scanner be sure of a find. A secret has
//! 178 bits of randomness, so a plain hash of it is safe to store: there is nothing to guess.

use std::fmt;

use sha2::{Digest, Sha256};

const ALPHABET: &[u8; 62] = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
const SECRET: usize = 30;
const CHECK: usize = 6;

/// How many random bytes a new key is made of. Twice what is needed on average: bytes that would favour
/// some letters are passed over.
pub const ENTROPY: usize = 64;

/// Whether a tenant's numbers count.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// They stand on real documents.
    Live,
    /// They are for trying things out.
    Test,
}

impl Mode {
    /// The word in the API and in the database.
    pub fn word(self) -> &'static str {
        match self {
            Self::Live => "live",
            Self::Test => "test",
        }
    }

    /// Reads the word; none if there is no such mode.
    pub fn from_word(word: &str) -> Option<Self> {
        [Self::Live, Self::Test].into_iter().find(|mode| mode.word() == word)
    }
}

/// An API key in the clear. Shown once to its owner, never stored, never printed by `Debug`.
#[derive(Clone, PartialEq, Eq)]
pub struct ApiKey(String);

impl ApiKey {
    /// Makes a key of random bytes; none if the bytes were too uneven to fill it (probability below 2^-50
    /// for bytes from a sound source), in which case ask again with new ones.
    pub fn from_entropy(mode: Mode, entropy: &[u8; ENTROPY]) -> Option<Self> {
        // 248 = 4 × 62: a byte below it picks each letter equally often.
        let letters = entropy.iter().filter(|b| **b < 248).take(SECRET);
        let mut key = format!("srt_{}_", mode.word());
        key.extend(letters.map(|b| char::from(ALPHABET[usize::from(b % 62)])));
        if key.len() != "srt_live_".len() + SECRET {
            return None;
        }
        let check = checksum(&key);
        key.push_str(&check);
        Some(Self(key))
    }

    /// Takes a key as a caller sent it, if its form and checksum are right.
    pub fn parse(raw: &str) -> Option<Self> {
        let secret = raw.strip_prefix("srt_live_").or_else(|| raw.strip_prefix("srt_test_"))?;
        let formed = secret.len() == SECRET + CHECK && secret.bytes().all(|b| b.is_ascii_alphanumeric());
        let (body, check) = raw.is_char_boundary(raw.len().checked_sub(CHECK)?).then(|| raw.split_at(raw.len() - CHECK))?;
        (formed && checksum(body) == check).then(|| Self(raw.to_owned()))
    }

    /// The SHA-256 that is stored and looked up.
    pub fn hash(&self) -> [u8; 32] {
        Sha256::digest(self.0.as_bytes()).into()
    }

    /// The key in the clear, for the one answer that shows it.
    pub fn reveal(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for ApiKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ApiKey(hidden)")
    }
}

/// CRC-32 (ISO-HDLC) of everything before it, as six base62 digits, most significant first.
fn checksum(body: &str) -> String {
    let mut rest = crc32fast::hash(body.as_bytes());
    let mut digits = [b'0'; CHECK];
    for digit in digits.iter_mut().rev() {
        *digit = ALPHABET[(rest % 62) as usize];
        rest /= 62;
    }
    digits.into_iter().map(char::from).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key() -> ApiKey {
        let mut entropy = [0; ENTROPY];
        for (i, byte) in entropy.iter_mut().enumerate() {
            *byte = u8::try_from(i * 7 % 256).unwrap();
        }
        ApiKey::from_entropy(Mode::Live, &entropy).unwrap()
    }

    #[test]
    fn a_key_reads_itself_back() {
        let key = key();
        assert_eq!(key.reveal().len(), 45);
        assert_eq!(ApiKey::parse(key.reveal()), Some(key.clone()));
        assert_eq!(format!("{key:?}"), "ApiKey(hidden)");
    }

    #[test]
    fn every_single_typo_is_seen() {
        let right = key().reveal().to_owned();
        for at in "srt_live_".len()..right.len() {
            let mut wrong = right.clone().into_bytes();
            wrong[at] = if wrong[at] == b'x' { b'y' } else { b'x' };
            assert_eq!(ApiKey::parse(&String::from_utf8(wrong).unwrap()), None, "at {at}");
        }
        for bad in ["", "srt_live_", "srt_live_é", &right[..44], &format!("{right}0"), &right.replace("live", "test")] {
            assert_eq!(ApiKey::parse(bad), None, "{bad}");
        }
    }

    #[test]
    fn uneven_bytes_make_no_key() {
        assert_eq!(ApiKey::from_entropy(Mode::Test, &[255; ENTROPY]), None);
    }
}
