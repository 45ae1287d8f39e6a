//! A column of a row group that is being written: its pages.

use bytes::Bytes;
use parquet::basic::{Compression, Encoding, ZstdLevel};
use parquet::column::page::{CompressedPage, Page, PageWriteSpec, PageWriter};
use parquet::column::writer::ColumnCloseResult;
use parquet::errors::Result;
use parquet::file::metadata::ColumnChunkMetaData;
use parquet::file::writer::{SerializedPageWriter, SerializedRowGroupWriter, TrackedWrite};
use parquet::schema::types::ColumnDescPtr;
use zstd::bulk::Compressor;

/// The level of zstd.
const LEVEL: i32 = 1;

/// Compresses pages. It costs more to make one than to use it for a page.
pub(crate) struct Zstd(Compressor<'static>);

impl Zstd {
    pub(crate) fn new() -> Self {
        Self(Compressor::new(LEVEL).expect("zstd has this level"))
    }
}

/// Values of a column, encoded.
pub(crate) struct Encoded {
    pub(crate) count: usize,
    pub(crate) encoding: Encoding,
    pub(crate) bytes: Vec<u8>,
}

/// The pages of a column, while a row group fills.
pub(crate) struct Chunk {
    pages: Vec<u8>,
    encoding: Encoding,
    is_compressed: bool,
    values: usize,
    uncompressed: usize,
}

impl Chunk {
    /// No pages yet. They are compressed, or they are not.
    pub(crate) fn new(is_compressed: bool) -> Self {
        Self {
            pages: Vec::new(),
            encoding: Encoding::PLAIN,
            is_compressed,
            values: 0,
            uncompressed: 0,
        }
    }

    /// Adds a page.
    pub(crate) fn push(&mut self, values: Encoded, zstd: &mut Zstd) -> Result<()> {
        let size = values.bytes.len();
        let bytes = if self.is_compressed {
            zstd.0.compress(&values.bytes)?
        } else {
            values.bytes
        };
        let page = Page::DataPage {
            buf: Bytes::from(bytes),
            num_values: values.count as u32,
            encoding: values.encoding,
            def_level_encoding: Encoding::RLE,
            rep_level_encoding: Encoding::RLE,
            statistics: None,
        };
        self.uncompressed += append(&mut self.pages, page, size)?.uncompressed_size;
        self.encoding = values.encoding;
        self.values += values.count;
        Ok(())
    }

    /// Writes its pages as the next column of a row group, behind the dictionary if there is one;
    /// none are left.
    pub(crate) fn write_to<W: std::io::Write + Send>(
        &mut self,
        group: &mut SerializedRowGroupWriter<'_, W>,
        column: ColumnDescPtr,
        dictionary: Option<Encoded>,
    ) -> Result<()> {
        let mut encodings = vec![self.encoding];
        if column.max_def_level() > 0 {
            encodings.push(Encoding::RLE);
        }
        let mut bytes = Vec::new();
        let mut uncompressed = self.uncompressed;
        if let Some(dictionary) = &dictionary {
            let page = Page::DictionaryPage {
                buf: Bytes::copy_from_slice(&dictionary.bytes),
                num_values: dictionary.count as u32,
                encoding: dictionary.encoding,
                is_sorted: false,
            };
            encodings.push(dictionary.encoding);
            uncompressed += append(&mut bytes, page, dictionary.bytes.len())?.uncompressed_size;
        }
        let data_at = bytes.len();
        bytes.append(&mut self.pages);
        let codec = if self.is_compressed {
            Compression::ZSTD(ZstdLevel::try_new(LEVEL)?)
        } else {
            Compression::UNCOMPRESSED
        };
        let metadata = ColumnChunkMetaData::builder(column)
            .set_encodings(encodings)
            .set_compression(codec)
            .set_num_values(self.values as i64)
            .set_total_compressed_size(bytes.len() as i64)
            .set_total_uncompressed_size(uncompressed as i64)
            .set_data_page_offset(data_at as i64)
            .set_dictionary_page_offset(dictionary.map(|_| 0))
            .build()?;
        let closed = ColumnCloseResult {
            bytes_written: bytes.len() as u64,
            rows_written: self.values as u64,
            metadata,
            bloom_filter: None,
            column_index: None,
            offset_index: None,
        };
        *self = Self::new(self.is_compressed);
        group.append_column(&Bytes::from(bytes), closed)
    }
}

/// Appends a page, with its header. `size` is what its bytes have uncompressed.
fn append(pages: &mut Vec<u8>, page: Page, size: usize) -> Result<PageWriteSpec> {
    let mut sink = TrackedWrite::new(pages);
    let mut writer = SerializedPageWriter::new(&mut sink);
    let written = writer.write_page(CompressedPage::new(page, size))?;
    writer.close()?;
    Ok(written)
}
